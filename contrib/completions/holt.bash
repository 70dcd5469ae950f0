# bash completion for holt
#
# Verbs, options and their values come from the output of "holt help" and "holt help VERB", so that they match the
# installed holt.

# Typed text is data. It never becomes part of a pattern or of a program (sed, grep, an unquoted word). compgen -W
# expands its words, so it gets only words of this file.

# The help of a verb, which may be two words. A typed word with other characters than letters is no verb, and is never
# passed to holt.
_holt_help() {
        local word

        for word in "$@"; do
                [[ -n $word && $word != *[!abcdefghijklmnopqrstuvwxyz]* ]] || return
        done
        command holt "$@" --help 2>/dev/null
}

# Prints the lines of stdin that start with a word.
_holt_begin() {
        local line

        while IFS= read -r line; do
                [[ -z $line || $line != "$1"* ]] || printf '%s\n' "$line"
        done
}

# Prints the argument of an option, from the lines of _holt_options.
_holt_argument() {
        local line

        while IFS= read -r line; do
                [[ $line == "$1 "* ]] || continue
                printf '%s\n' "${line#"$1 "}"
                return
        done <<<"$2"
}

# Prints the options of a verb, each with its argument on a line: "--ro PATH[:TARGET]", "--json".
_holt_options() {
        _holt_help "$@" | sed -nE 's/^  (--?[a-z-]+)( ([^ ]+))?( .*)?$/\1 \3/p'
}

_holt_verbs() {
        command holt --help 2>/dev/null | sed -nE '/^Verbs:/,/^$/s/^  ([a-z]+) .*/\1/p'
}

_holt_policy_verbs() {
        command holt policy --help 2>/dev/null | sed -nE 's/^  holt policy ([a-z]+).*/\1/p'
}

# Prints the words that the help of a verb lists below a value: run LAYER, run @GROUP, kill SIG.
_holt_listed() {
        _holt_help "$1" | sed -nE "/^  $2 /,/^(  [^ ]|$)/s/^ {30}([A-Za-z@].*)/\1/p" | tr -s ' ' '\n'
}

_holt_syscalls() {
        command holt policy syscalls 2>/dev/null | sed 's/ .*//'
}

_holt_presets() {
        command holt policy list 2>/dev/null | sed '/^[@-]/d;s/ .*//'
}

_holt_routes() {
        command holt policy routes 2>/dev/null | sed 's/ .*//'
}

_holt_sessions() {
        command holt ls 2>/dev/null | sed '1d;s/ .*//'
}

# Succeeds if the word after the verb is the name of a session.
_holt_takes_session() {
        [[ $1 != create && $(_holt_help "$1") == "Usage: holt $1 NAME"* ]]
}

# Prints the sets of network rules, each after the typed rules in front of its comma.
_holt_rules() {
        local line before=""

        [[ $1 != *,* ]] || before=${1%,*},
        while IFS= read -r line; do
                printf '%s\n' "$before$line"
        done < <(_holt_listed run RULE)
}

# Completes the value of an option, chosen by the name that the help gives it.
_holt_value() {
        case $1 in
        NAME\|FILE)
                mapfile -t COMPREPLY < <(
                        _holt_presets | _holt_begin "$2"
                        compgen -d -- "$2"
                        # -X takes the pattern of the names to leave out.
                        compgen -f -X '!*.json' -- "$2"
                )
                ;;
        ROUTE) mapfile -t COMPREPLY < <(_holt_routes | _holt_begin "$2") ;;
        LAYER) mapfile -t COMPREPLY < <(_holt_listed run LAYER | _holt_begin "$2") ;;
        NAME\|@GROUP)
                mapfile -t COMPREPLY < <({ _holt_listed run @GROUP; _holt_syscalls; } | _holt_begin "$2")
                # These are not file names, in which "@" would be quoted.
                compopt +o filenames 2>/dev/null
                ;;
        RULE*)
                mapfile -t COMPREPLY < <(_holt_rules "$2" | _holt_begin "$2")
                compopt +o filenames 2>/dev/null
                ;;
        SIG)
                # Only the signals that holt accepts; the shell has more. SIG comes before a name only if the word
                # starts with it.
                if [[ $2 == SIG* ]]; then
                        mapfile -t COMPREPLY < <(_holt_listed kill SIG | sed 's/^/SIG/' | _holt_begin "$2")
                else
                        mapfile -t COMPREPLY < <(_holt_listed kill SIG | _holt_begin "$2")
                fi
                ;;
        NAME*VALUE*) mapfile -t COMPREPLY < <(compgen -e -- "$2") ;;
        DIR*) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
        PATH* | SRC* | FILE*) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
        [a-z]*) mapfile -t COMPREPLY < <(printf '%s\n' "${1//|/$'\n'}" | _holt_begin "$2") ;;
        esac
}

# Completes the keys of a session, without starting it. Keys may contain blanks.
_holt_keys() {
        command holt kv "$1" keys "$2" --limit 1000 2>/dev/null
}

# Completes the path $2 in session $1, which stays at rest. Directories end in "/". With a third argument, only
# directories are completed.
_holt_inside() {
        local name above=""

        [[ $2 == */* ]] && above=${2%/*}/
        mapfile -t COMPREPLY < <(
                command holt files "$1" ls -- "${above:-.}" 2>/dev/null |
                        sed -nE "${3:+/^d/!d;}"'s/^(.)[^ ]+ +[0-9]+ [^ ]+ [^ ]+ /\1/;s/^(l.*) -> .*/\1/;s/^d.*/&\//;s/^.//p' |
                        while IFS= read -r name; do
                                [[ $above$name != "$2"* ]] || printf '%s\n' "$above$name"
                        done
        )
        [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
}

# Completes the operands of holt cp: files, sessions with a ":", and paths after that.
_holt_copied() {
        local i name=${1%%:*}

        if [[ $1 == *:* && $name != */* ]]; then
                _holt_inside "$name" "${1#*:}"
                for i in "${!COMPREPLY[@]}"; do
                        COMPREPLY[i]=$name:${COMPREPLY[i]}
                done
                return
        fi
        mapfile -t COMPREPLY < <(
                _holt_sessions | sed 's/$/:/' | _holt_begin "$1"
                [[ $1 == *:* ]] || compgen -f -- "$1"
        )
        [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *: ]] && compopt -o nospace 2>/dev/null
}

# Completes an operand. $3 is the number of operands before it, $4 the first and $5 the second of them.
_holt_operand() {
        case $1:$3 in
        'policy show':*) _holt_value 'NAME|FILE' "$2" ;;
        'policy check':*) _holt_value FILE "$2" ;;
        'policy routes':0) _holt_value ROUTE "$2" ;;
        stop:* | rm:*) mapfile -t COMPREPLY < <(_holt_sessions | _holt_begin "$2") ;;
        tier:1) mapfile -t COMPREPLY < <(compgen -W 'standard medium large xlarge' -- "$2") ;;
        files:1) mapfile -t COMPREPLY < <(compgen -W 'ls cat get put stat mkdir rm mv cp' -- "$2") ;;
        files:[2-9]*)
                case $5:$3 in
                put:2 | get:3) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
                *) _holt_inside "$4" "$2" ;;
                esac
                ;;
        cp:*) _holt_copied "$2" ;;
        python:1) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
        route:0) mapfile -t COMPREPLY < <(compgen -W 'add list remove' -- "$2") ;;
        route:1) mapfile -t COMPREPLY < <(_holt_sessions | _holt_begin "$2") ;;
        route:2) [[ $4 == add ]] && _holt_value ROUTE "$2" ;;
        kv:2) [[ $5 == get || $5 == set || $5 == delete ]] && mapfile -t COMPREPLY < <(_holt_keys "$4" "$2") ;;
        kv:1) mapfile -t COMPREPLY < <(compgen -W 'get set delete keys' -- "$2") ;;
        kill:1)
                mapfile -t COMPREPLY < <(
                        command holt ps "$4" 2>/dev/null | sed -E '1d;/^$/,$d;/^[^ ]+ +ended /d;s/ .*//' | _holt_begin "$2")
                ;;
        logs:1 | wait:1)
                mapfile -t COMPREPLY < <(
                        command holt ps "$4" 2>/dev/null | sed '1d;/^$/,$d;s/ .*//' | _holt_begin "$2")
                ;;
        *:0)
                _holt_takes_session "$1" &&
                        mapfile -t COMPREPLY < <(_holt_sessions | _holt_begin "$2")
                ;;
        esac
}

# Bash also breaks words at "=", ":" and "@" (COMP_WORDBREAKS). Sets words to the words between blanks, up to the
# cursor. Sets starts to the index of each among bash's own words, and tail to the end of the last word, which bash
# replaces.
_holt_split() {
        local i word blanks line=$COMP_LINE

        words=() starts=() tail=${COMP_WORDS[COMP_CWORD]}
        [[ $tail == *[=:] ]] && tail=
        # Unlike COMP_WORDS, readline replaces a leading "@", too.
        [[ $tail == *@ ]] && tail=@
        [[ $COMP_CWORD -gt 0 && ${COMP_WORDS[COMP_CWORD - 1]} == *@ && $COMP_LINE == *"@$tail" ]] && tail=@$tail
        for ((i = 0; i <= COMP_CWORD; i++)); do
                word=${COMP_WORDS[i]} blanks=${line%%[![:blank:]]*}
                line=${line#"$blanks"}
                line=${line#"$word"}
                if ((i == 0)) || [[ -n $blanks ]]; then
                        words+=("$word") starts+=("$i")
                else
                        words[-1]+=$word
                fi
        done
}

# Completes the arguments of the command with the command's own completion.
_holt_command() {
        if declare -F _comp_command_offset >/dev/null; then
                _comp_command_offset "$1"
        elif declare -F _command_offset >/dev/null; then
                _command_offset "$1"
        elif (($1 == COMP_CWORD)); then
                mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}" | sort -u)
        else
                mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
        fi
}

# Bash replaces only the text after the last break in a word, so only that part is returned.
_holt_skip() {
        local i skip=$((${#1} - ${#tail}))

        for i in "${!COMPREPLY[@]}"; do
                COMPREPLY[i]=${COMPREPLY[i]:skip}
        done
}

# Drops words with "$" or a backquote, because bash does not quote these in a completed word. A command may have chosen
# the name of a file, and the user's shell would run a part of it.
_holt_drop() {
        local i

        for i in "${!COMPREPLY[@]}"; do
                [[ ${COMPREPLY[i]} != *[\$\`]* ]] || unset "COMPREPLY[i]"
        done
}

# Completes option $2, whose value the help calls $3, of verb $1 for session $5.
_holt_complete_value() {
        case "$1 $2" in
        'exec --cwd' | 'python --cwd') _holt_inside "$5" "$4" / ;;
        *) _holt_value "$3" "$4" ;;
        esac
        _holt_skip "$4"
}

# Completes the words after the verb, which may be two words. words[start] is the first of them.
_holt_behind() {
        local verb=$1 start=$2 last=$((${#words[@]} - 1)) i word=${words[-1]} options argument
        local count=0 first="" second="" command

        # Number of operands before the command.
        case $verb in
        run) command=0 ;;
        exec) command=1 ;;
        *) command=-1 ;;
        esac

        options=$(_holt_options "${words[@]:1:start-1}")
        for ((i = start; i < last; i++)); do
                argument=$(_holt_argument "${words[i]}" "$options")
                if [[ ${words[i]} == -- || ${words[i]} != -* ]]; then
                        if ((count == command)); then
                                [[ ${words[i]} == -- ]] && ((i++))
                                _holt_command "${starts[i]}"
                                return
                        fi
                        case $((count++)) in
                        0) first=${words[i]} ;;
                        1) second=${words[i]} ;;
                        esac
                elif [[ -n $argument ]] && ((++i == last)); then
                        _holt_complete_value "$verb" "${words[i - 1]}" "$argument" "$word" "$first"
                        return
                fi
        done
        if [[ $word == --*=* ]]; then
                argument=$(_holt_argument "${word%%=*}" "$options")
                _holt_complete_value "$verb" "${word%%=*}" "$argument" "${word#*=}" "$first"
        elif [[ $word == -* ]]; then
                mapfile -t COMPREPLY < <(printf '%s\n' "$options" | sed 's/ .*//' | _holt_begin "$word")
        elif ((count == command)); then
                # A command may be in several directories of PATH, and is listed once.
                mapfile -t COMPREPLY < <(compgen -c -- "$word" | sort -u)
        else
                _holt_operand "$verb" "$word" "$count" "$first" "$second"
                _holt_skip "$word"
        fi
}

_holt() {
        local -a words starts
        local tail

        COMPREPLY=()
        _holt_split
        # After "holt help", complete as after "holt".
        if [[ ${words[1]} == help ]] && ((${#words[@]} > 2)); then
                words=("${words[0]}" "${words[@]:2}")
                ((${#words[@]} == 2)) || [[ ${#words[@]} -eq 3 && ${words[1]} == policy ]] || return
        fi
        if ((${#words[@]} == 2)); then
                mapfile -t COMPREPLY < <({ _holt_verbs; printf '%s\n' --help --version; } | _holt_begin "${words[1]}")
        elif [[ ${words[1]} != policy ]]; then
                _holt_behind "${words[1]}" 2
        elif ((${#words[@]} == 3)); then
                mapfile -t COMPREPLY < <({ _holt_policy_verbs; printf '%s\n' --help; } | _holt_begin "${words[2]}")
        else
                _holt_behind "policy ${words[2]}" 3
        fi
        _holt_drop
}

complete -o filenames -o bashdefault -F _holt holt
