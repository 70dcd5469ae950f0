# SPDX-License-Identifier: Apache-2.0
# bash names.bash: makes /NAME and /data/NAME the same, for each NAME that is not the system's.
#
# Theory of operation. What a program makes stays where it made it, at /NAME or /data/NAME, and a link to it is put at
# the other place; $here/links has those that we have put. One of them that is gone was removed by the program, which
# meant the file: it goes, too, but where another link leads to it: then the link was moved, and the file follows. What has
# taken a link's place (sed -i, mv) is newer than what the link led to, which goes.
#
# /home is the system's as far as there is /home/agent. /data/home leads to it as soon as something else is in there.
shopt -s nullglob dotglob
here=${BASH_SOURCE[0]%/*}
exec 9>"$here/lock"
flock 9 2>/dev/null

declare -A ours=()
while IFS= read -r -d '' link; do ours[$link]=1; done 2>/dev/null <"$here/links"

other_of() { [[ $1 == /data/* ]] && other=/${1#/data/} || other=/data$1; }

is_systems() { [[ $1 == data || " $system " == *" $1 "* ]]; }

system=$(<"$here/system")
candidates=(/* /data/*)

# What we have put and is no more
for link in "${!ours[@]}"; do
	other_of "$link"
	[[ -L $link && $(readlink "$link") == "$other" ]] && continue
	unset 'ours[$link]'
	[[ -e $other && ! -L $other ]] || continue
	if [[ -e $link || -L $link ]]; then # replaced
		rm -rf -- "$other"
		continue
	fi
	for each in "${candidates[@]}"; do
		[[ -L $each && $(readlink "$each") == "$other" ]] || continue
		rm -f -- "$each" && mv -T -- "$other" "$each"
		break
	done
	[[ ! -e $other || -n $(find / /data -xdev -lname "$other" -print -quit 2>/dev/null) ]] || rm -rf -- "$other"
done

candidates=(/* /data/*)
for path in "${candidates[@]}"; do
	name=${path##*/}
	is_systems "$name" && continue
	other_of "$path"
	if [[ -L $path && $(readlink "$path") == "$other" ]]; then
		if [[ -e $other || -L $other ]]; then ours[$path]=1; else rm -f -- "$path"; unset 'ours[$path]'; fi
	elif [[ -L $other && $(readlink "$other") == "$path" ]]; then
		ours[$other]=1
	elif [[ -e $other || -L $other ]]; then # both are the program's: the newer one is meant; directories are put together
		[[ $path == /data/* ]] || continue
		if [[ -d $path && -d $other && ! -L $path && ! -L $other ]]; then
			cp -a -u -T -- "$other" "$path" && rm -rf -- "$other" && ln -s "$path" "$other" && ours[$other]=1
		elif [[ $other -nt $path ]]; then
			rm -rf -- "$path" && ln -s "$other" "$path" && ours[$path]=1
		else
			rm -rf -- "$other" && ln -s "$path" "$other" && ours[$other]=1
		fi
	else
		ln -s "$path" "$other" && ours[$other]=1
	fi
done

homes=(/home/*)
users=(/home/user/*)
if [[ ! -e /data/home && (${#homes[@]} -gt 2 || ${#users[@]} -gt 0) ]]; then
	ln -s /home /data/home
elif [[ -L /data/home && ${#homes[@]} -le 2 && ${#users[@]} -eq 0 ]]; then
	rm -f /data/home
fi
[[ -e /home/user ]] || mkdir -p /home/user

for link in "${!ours[@]}"; do printf '%s\0' "$link"; done >"$here/links"
: >"$here/settled"
