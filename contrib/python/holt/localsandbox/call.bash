# SPDX-License-Identifier: Apache-2.0
# bash call.bash LOOPS COMMANDS MARK LINE: runs a line of bash. It counts commands (limits.bash), and makes /data the
# root (names.bash).
here=${BASH_SOURCE[0]%/*}
is_settled() {
	[[ / -ot $here/settled && /data -ot $here/settled && /home -ot $here/settled && /home/user -ot $here/settled ]]
}
is_settled || bash "$here/names.bash"
# The pipe has one byte for each command that may run, in any bash process. A bash that finds it empty has exceeded the
# limit. All bytes fit at once, because a pipe takes 64 KiB.
exec 199< <(printf '%*s' "$2" '')
# bash reports a child that a signal has ended. This report is not output of the program, so it is dropped.
exec 198>&2 2>/dev/null
__LOCALSANDBOX_LOOPS=$1 __LOCALSANDBOX_COMMANDS=$2 __LOCALSANDBOX_MARK=$3 BASH_ENV=$here/limits.bash \
	bash -c "$4" 2>&198 198>&-
code=$?
exec 2>&198 198>&-
is_settled || bash "$here/names.bash"
exit "$code"
