# SPDX-License-Identifier: Apache-2.0
# bash names.bash: makes /NAME and /data/NAME the same file, for each NAME that does not belong to the system.
#
# Theory of operation. A file stays where the program made it, at /NAME or /data/NAME. This script puts a symlink to it at
# the other place, and records the symlink in $here/links. A recorded symlink may later have changed:
#
# - It is gone. The program meant to remove the file, so the file is removed, too.
# - It was moved, so another symlink points to the file. The file is moved there.
# - Another file has replaced it (sed -i, mv). That file is newer, so the old file is removed.
#
# There may be thousands of names. So a single find lists them, and each step handles many names at once.
#
# /home belongs to the system, because it has /home/agent. /data/home points to it once it has other entries.
shopt -s nullglob dotglob
here=${BASH_SOURCE[0]%/*}
exec 9>"$here/lock"
flock 9 2>/dev/null

declare -A ours=() systems=([data]=1)
while IFS= read -r -d '' link && IFS= read -r -d '' inode; do ours[$link]=$inode; done 2>/dev/null <"$here/links"
for name in $(<"$here/system"); do systems[$name]=1; done

# The existing entries: the type as printed by find, the target of a symlink, the inode, and the symlink that points here
declare -A type=() target=() inodes=() leading=()
look() {
	local found i
	mapfile -d '' -t found < <(find / /data -mindepth 1 -maxdepth 1 -printf '%y\0%p\0%l\0%i\0' 2>/dev/null)
	type=() target=() inodes=() leading=()
	for ((i = 0; i < ${#found[@]}; i += 4)); do
		type[${found[i + 1]}]=${found[i]} target[${found[i + 1]}]=${found[i + 2]} inodes[${found[i + 1]}]=${found[i + 3]}
		[[ ${found[i]} != l ]] || leading[${found[i + 2]}]=${found[i + 1]}
	done
}
leads() { [[ ${type[$1]-} == l && ${target[$1]} == "$2" ]]; }

# All symlinks, by target, and by inode and target
declare -A where=()
searched=
search() {
	local found i
	mapfile -d '' -t found < <(find / -xdev -type l -printf '%i\0%l\0%p\0' 2>/dev/null)
	where=() searched=1
	for ((i = 0; i < ${#found[@]}; i += 3)); do
		where["${found[i]} ${found[i + 1]}"]=${found[i + 2]} where["${found[i + 1]}"]=${found[i + 2]}
	done
}

other_of() { [[ $1 == /data/* ]] && other=/${1#/data/} || other=/data$1; }

for_each() { (($# < 2)) || printf '%s\0' "${@:2}" | xargs -0r $1 -- 2>/dev/null; }

# Recorded symlinks that have changed
changed='' gone=()
look
for link in "${!ours[@]}"; do
	other_of "$link"
	leads "$link" "$other" && continue
	inode=${ours[$link]}
	unset 'ours[$link]'
	[[ ${type[$other]-l} != l ]] || continue
	changed=1
	[[ -n $searched ]] || search
	moved=${where["$inode $other"]-}
	if [[ -n $moved ]]; then
		rm -f -- "$moved" && mv -T -- "$other" "$moved"
		searched='' # the moved tree may contain symlinks
	elif [[ -n ${type[$link]-} ]]; then # replaced
		gone+=("$other")
	elif [[ -n ${leading[$other]-} ]]; then # copied before
		rm -f -- "${leading[$other]}" && mv -T -- "$other" "${leading[$other]}"
	elif [[ -z ${where[$other]-} ]]; then
		gone+=("$other")
	fi
done
for_each 'rm -rf' "${gone[@]}"
[[ -z $changed ]] || look

stale=() at_root=() at_data=() new=()
for path in "${!type[@]}"; do
	name=${path##*/}
	[[ -z ${systems[$name]-} ]] || continue
	other_of "$path"
	if leads "$path" "$other"; then
		if [[ -n ${type[$other]-} ]]; then ours[$path]=${inodes[$path]}; else stale+=("$path") && unset 'ours[$path]'; fi
	elif leads "$other" "$path"; then
		ours[$other]=${inodes[$other]}
	elif [[ -n ${type[$other]-} ]]; then # both belong to the program: the newer one wins; directories are merged
		[[ $path == /data/* ]] || continue
		if [[ ${type[$path]}${type[$other]} == dd ]]; then
			cp -a -u -T -- "$other" "$path" && rm -rf -- "$other" && ln -s "$path" "$other" && new+=("$other")
		elif [[ $other -nt $path ]]; then
			rm -rf -- "$path" && ln -s "$other" "$path" && new+=("$path")
		else
			rm -rf -- "$other" && ln -s "$path" "$other" && new+=("$other")
		fi
	elif [[ $path == /data/* ]]; then
		at_root+=("$path")
	else
		at_data+=("$path")
	fi
done

for_each 'rm -f' "${stale[@]}"
for_each 'ln -s -t /' "${at_root[@]}"
for_each 'ln -s -t /data' "${at_data[@]}"
for path in "${at_root[@]}" "${at_data[@]}"; do # a command that runs meanwhile may have made it first
	other_of "$path"
	[[ ! -L $other ]] || new+=("$other")
done

homes=(/home/*)
users=(/home/user/*)
if [[ ! -e /data/home && (${#homes[@]} -gt 2 || ${#users[@]} -gt 0) ]]; then
	ln -s /home /data/home
elif [[ -L /data/home && ${#homes[@]} -le 2 && ${#users[@]} -eq 0 ]]; then
	rm -f /data/home
fi
[[ -e /home/user ]] || mkdir -p /home/user

{
	for link in "${!ours[@]}"; do printf '%s\0%s\0' "$link" "${ours[$link]}"; done
	((${#new[@]} == 0)) || printf '%s\0' "${new[@]}" | xargs -0r stat --printf '%n\0%i\0' -- 2>/dev/null
} >"$here/links"
: >"$here/settled"
