# SPDX-License-Identifier: Apache-2.0
# bash call.bash LOOPS COMMANDS MARK LINE: runs a line of bash, counted (limits.bash), in which /data is the root (names.bash).
here=${BASH_SOURCE[0]%/*}
is_settled() {
	[[ / -ot $here/settled && /data -ot $here/settled && /home -ot $here/settled && /home/user -ot $here/settled ]]
}
is_settled || bash "$here/names.bash"
# One byte for each command that may run: who finds none is past the limit, in whatever process of bash. Full at once,
# as a pipe takes 64 KiB.
exec 199< <(printf '%*s' "$2" '')
# What ends by a signal is told by this bash, with a line of ours, which is none of the program's.
exec 198>&2 2>/dev/null
__LOCALSANDBOX_LOOPS=$1 __LOCALSANDBOX_COMMANDS=$2 __LOCALSANDBOX_MARK=$3 BASH_ENV=$here/limits.bash \
	bash -c "$4" 2>&198 198>&-
code=$?
exec 2>&198 198>&-
is_settled || bash "$here/names.bash"
exit "$code"
