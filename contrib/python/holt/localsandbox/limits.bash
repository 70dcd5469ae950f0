# SPDX-License-Identifier: Apache-2.0
# Counts what bash does; each bash of a call reads it first (BASH_ENV).
#
# Theory of operation. The DEBUG trap, which functions and subshells inherit (set -T), is run before each command. It
# takes one byte of a pipe that all bashes of the call share: commands are counted wherever they run.
#
# Loops are told by what recurs. The trap keeps the way it has come by: the places (depth of functions, line, text)
# that it has passed. A place that is on that way already is the head of a loop, which has gone round: it is counted,
# and the way behind it is forgotten, with the counts of loops within. So each loop is counted by itself, and afresh
# when it starts again. Where a function returns its places go. What is taken for a loop and is none are equal commands
# in one line.
#
# Besides, a name that the command spells as /data/NAME and that is there as /NAME, or the other way round, gets its
# link before the command looks for it (names.bash says why).
#
# It is for runaway scripts: code that wants to get rid of the trap will. The session's limits hold in any case.

if [[ -n ${__LOCALSANDBOX_MARK-} ]]; then
	declare -A __localsandbox_at=()
	declare -a __localsandbox_place=() __localsandbox_count=() __localsandbox_depth=()
	__localsandbox_top=0 __localsandbox_entered=

	__localsandbox_end() {
		printf '%s\n' "$1" >"$__LOCALSANDBOX_MARK"
		kill -KILL 0
	}

	# The name before the first "/" of $1, unless it is the system's.
	__localsandbox_link() {
		local text=" ${1//[\"\'=:<>(),;&|]/ }" name one other
		while [[ $text == *' /'* ]]; do
			text=${text#*' /'}
			one=/data other=''
			name=${text%%[$' \t\n']*}
			if [[ $name == data/?* ]]; then
				name=${name#data/} one='' other=/data
			fi
			name=${name%%/*}
			# one has it, and other, as it is spelled, has not
			if [[ -n $name && $name != *[*?[]* && ! -e $other/$name && ! -L $other/$name && -e $one/$name ]]; then
				case " $__LOCALSANDBOX_SYSTEM " in
				*" $name "*) ;;
				*) bash "${BASH_SOURCE[0]%/*}/names.bash" ;;
				esac
			fi
		done
	}

	# $1: depth of functions, empty outside of them; $2: line; $3 is $_, which it is afterwards again
	__localsandbox_step() {
		local __localsandbox_key="$1:$2:$BASH_COMMAND" __localsandbox_byte __localsandbox_i
		set -- "${1:-0}" "$2" "$3"
		while ((__localsandbox_top > 0 && __localsandbox_depth[__localsandbox_top - 1] > $1)); do
			((__localsandbox_top--)) || :
		done
		# A function that is entered is told of by a step of its own, with the text of the command before.
		if [[ $1 -gt 0 && $BASH_COMMAND == "$__localsandbox_entered" ]] &&
			((__localsandbox_top > 0 && __localsandbox_depth[__localsandbox_top - 1] < $1)); then
			__localsandbox_entered=
			return 0
		fi
		__localsandbox_entered=$BASH_COMMAND
		__localsandbox_i=${__localsandbox_at["$__localsandbox_key"]-}
		if [[ -n $__localsandbox_i ]] && ((__localsandbox_i < __localsandbox_top)) &&
			[[ ${__localsandbox_place[__localsandbox_i]} == "$__localsandbox_key" ]]; then
			__localsandbox_top=$((__localsandbox_i + 1))
			__localsandbox_count[__localsandbox_i]=$((__localsandbox_count[__localsandbox_i] + 1))
			# The head of "for" is passed once a round, a condition once more.
			case $BASH_COMMAND in
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
		case $BASH_COMMAND in
		'for '* | 'select '* | 'case '*) ;;
		*)
			IFS= builtin read -r -d '' -N 1 -u 199 __localsandbox_byte ||
				__localsandbox_end "command_count $__LOCALSANDBOX_COMMANDS"
			;;
		esac
		[[ $BASH_COMMAND != */* ]] || __localsandbox_link "$BASH_COMMAND"
		return 0
	}

	# What is given to DEBUG would be in the place of the counting.
	trap() {
		local each
		for each; do
			case ${each^^} in
			DEBUG | SIGDEBUG)
				echo 'bash: trap: DEBUG is taken: commands are counted by it' >&2
				return 1
				;;
			esac
		done
		# shellcheck disable=SC2064
		builtin trap "$@"
	}
	readonly -f trap __localsandbox_step __localsandbox_end __localsandbox_link

	set -T
	# Not in the trace of set -x.
	builtin trap '{ __localsandbox_step "${FUNCNAME+${#FUNCNAME[@]}}" "$LINENO" "$_"; } 2>/dev/null' DEBUG
fi
