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
# bash looks for a variable in every function that is under way, so that what a step costs grows with their depth. Past
# DEEP of them only commands are counted: what recurs without an end comes to its limit all the same, and in time.
#
# Besides, a name that the command spells as /data/NAME and that is there as /NAME, or the other way round, gets its
# link before the command looks for it (names.bash says why).
#
# It is for runaway scripts: code that wants to get rid of the trap will. The session's limits hold in any case.

if [[ -n ${__LOCALSANDBOX_MARK-} ]]; then
	declare -A __localsandbox_at=()
	declare -a __localsandbox_place=() __localsandbox_count=() __localsandbox_depth=()
	__localsandbox_top=0 __localsandbox_deep=0 __localsandbox_entered=

	__localsandbox_end() {
		printf '%s\n' "$1" >"$__LOCALSANDBOX_MARK"
		kill -KILL 0
	}

	# Each NAME of a spelled /NAME or /data/NAME that only the other place has. Of the system's, /data has those that a
	# program may write to, once they are spelled so.
	__localsandbox_link() {
		local - IFS=$' \t\n"\'=:<>(),;&|' word name one other
		set -f
		for word in $1; do # in a time that grows with the text, which may have a here-document
			[[ $word == /* ]] || continue
			one=/data other='' name=${word#/}
			if [[ $name == data/?* ]]; then
				name=${name#data/} one='' other=/data
			fi
			name=${name%%/*}
			# one has it, and other, as it is spelled, has not
			if [[ -n $name && $name != *[*?[]* && ! -e $other/$name && ! -L $other/$name && -e $one/$name ]]; then
				case " $__LOCALSANDBOX_SHARED / $__LOCALSANDBOX_SYSTEM " in
				*" $name "*'/ '*) [[ -z $other ]] || ln -s "/$name" "/data/$name" 2>/dev/null ;;
				*" $name "*) ;;
				*) BASH_ENV='' bash "${BASH_SOURCE[0]%/*}/names.bash" ;; # which is not the program's to be counted
				esac
			fi
		done
	}

	# $1: depth of functions, empty outside of them; $2: line; $3: command; $4 is $_, which it is afterwards again
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
		# A function that is entered is told of by a step of its own, with the text of the command before.
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
			# The head of "for" is passed once a round, a condition once more.
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
	builtin trap '{ __localsandbox_step "${FUNCNAME+${#FUNCNAME[@]}}" "$LINENO" "$BASH_COMMAND" "$_"; } 2>/dev/null' DEBUG
fi
