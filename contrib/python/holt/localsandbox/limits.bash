# SPDX-License-Identifier: Apache-2.0
# Counts commands and loop iterations. Each bash of a call reads this file first (BASH_ENV).
#
# Theory of operation. The DEBUG trap runs before each command. Functions and subshells inherit it (set -T). The trap takes one
# byte from a pipe that all bash processes of the call share, so commands are counted in all of them.
#
# The trap recognises loops by repetition. It records a path of places, each of which is a depth of functions, a line
# and a text. A place that is already on the path is the head of a loop that has gone round. Its iterations are counted,
# and the places behind it are forgotten, with the counts of inner loops. So each loop has its own count, which starts
# again with the loop. When a function returns, its places are removed. Equal commands in one line are wrongly taken for
# a loop.
#
# bash looks up a variable in every active function, so a step takes longer at greater depth. Beyond a depth of DEEP,
# only commands are counted. Endless recursion then still reaches the limit of commands, and in reasonable time.
#
# The trap also makes symlinks. If the command names /data/NAME and only /NAME exists, or vice versa, the missing one is
# made before the command runs. See names.bash.
#
# This stops runaway scripts. Code that wants to remove the trap can do so; the session's limits still hold.

if [[ -n ${__LOCALSANDBOX_MARK-} ]]; then
	declare -A __localsandbox_at=()
	declare -a __localsandbox_place=() __localsandbox_count=() __localsandbox_depth=()
	__localsandbox_top=0 __localsandbox_deep=0 __localsandbox_entered=

	__localsandbox_end() {
		printf '%s\n' "$1" >"$__LOCALSANDBOX_MARK"
		kill -KILL 0
	}

	# Makes the symlink for each /NAME or /data/NAME in a text that exists only at the other place. The system's writable
	# names get one in /data once a command names them there.
	__localsandbox_link() {
		local - IFS=$' \t\n"\'=:<>(),;&|' word name one other
		set -f
		for word in $1; do # linear in the text, which may have a long here-document
			[[ $word == /* ]] || continue
			one=/data other='' name=${word#/}
			if [[ $name == data/?* ]]; then
				name=${name#data/} one='' other=/data
			fi
			name=${name%%/*}
			# The name exists below $one, and not below $other, which the text names
			if [[ -n $name && $name != *[*?[]* && ! -e $other/$name && ! -L $other/$name && -e $one/$name ]]; then
				case " $__LOCALSANDBOX_SHARED / $__LOCALSANDBOX_SYSTEM " in
				*" $name "*'/ '*) [[ -z $other ]] || ln -s "/$name" "/data/$name" 2>/dev/null ;;
				*" $name "*) ;;
				*) BASH_ENV='' bash "${BASH_SOURCE[0]%/*}/names.bash" ;; # without counting its commands
				esac
			fi
		done
	}

	# $1: depth of functions, empty outside of them; $2: line; $3: command; $4: $_, which is restored at the end
	__localsandbox_step() {
		local __localsandbox_byte
		if [[ ${1:-0} -gt 200 ]]; then # DEEP
			if [[ $1 -le $__localsandbox_deep || $3 != "$__localsandbox_entered" ]]; then
				builtin read -r -N 1 -u 199 __localsandbox_byte ||
					__localsandbox_end "command_count $__LOCALSANDBOX_COMMANDS"
				__localsandbox_entered=$3
				[[ $3 != */* ]] || __localsandbox_link "$3"
			fi
			__localsandbox_deep=$1
			return 0
		fi
		local __localsandbox_key="$1:$2:$3" __localsandbox_i
		set -- "${1:-0}" "$2" "$3" "$4"
		while ((__localsandbox_top > 0 && __localsandbox_depth[__localsandbox_top - 1] > $1)); do
			((__localsandbox_top--)) || :
		done
		# Entering a function causes a step of its own, which has the text of the previous command.
		if [[ $1 -gt 0 && $3 == "$__localsandbox_entered" ]] &&
			((__localsandbox_top > 0 && __localsandbox_depth[__localsandbox_top - 1] < $1)); then
			__localsandbox_entered=
			return 0
		fi
		__localsandbox_entered=$3
		__localsandbox_i=${__localsandbox_at["$__localsandbox_key"]-}
		if [[ -n $__localsandbox_i ]] && ((__localsandbox_i < __localsandbox_top)) &&
			[[ ${__localsandbox_place[__localsandbox_i]} == "$__localsandbox_key" ]]; then
			__localsandbox_top=$((__localsandbox_i + 1))
			__localsandbox_count[__localsandbox_i]=$((__localsandbox_count[__localsandbox_i] + 1))
			# The head of "for" is passed once per round, a condition once more at the end.
			case $3 in
			'for '* | 'select '*) ((__localsandbox_count[__localsandbox_i] <= __LOCALSANDBOX_LOOPS)) ;;
			*) ((__localsandbox_count[__localsandbox_i] <= __LOCALSANDBOX_LOOPS + 1)) ;;
			esac || __localsandbox_end "loop_iterations $__LOCALSANDBOX_LOOPS"
		else
			__localsandbox_at["$__localsandbox_key"]=$__localsandbox_top
			__localsandbox_place[__localsandbox_top]=$__localsandbox_key
			__localsandbox_depth[__localsandbox_top]=$1
			__localsandbox_count[__localsandbox_top]=1
			((++__localsandbox_top))
		fi
		case $3 in
		'for '* | 'select '* | 'case '*) ;;
		*)
			builtin read -r -N 1 -u 199 __localsandbox_byte ||
				__localsandbox_end "command_count $__LOCALSANDBOX_COMMANDS"
			;;
		esac
		[[ $3 != */* ]] || __localsandbox_link "$3"
		return 0
	}

	# A trap of the program for DEBUG would replace the counting, so it is refused.
	trap() {
		local each
		for each; do
			case ${each^^} in
			DEBUG | SIGDEBUG)
				echo 'bash: trap: DEBUG is not available: it counts commands' >&2
				return 1
				;;
			esac
		done
		# shellcheck disable=SC2064
		builtin trap "$@"
	}
	readonly -f trap __localsandbox_step __localsandbox_end __localsandbox_link

	set -T
	# The redirection hides the trap from the trace of set -x.
	builtin trap '{ __localsandbox_step "${FUNCNAME+${#FUNCNAME[@]}}" "$LINENO" "$BASH_COMMAND" "$_"; } 2>/dev/null' DEBUG
fi
