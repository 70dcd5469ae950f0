# bash completion for holt
#
# Verbs and options are taken from "holt --help" and "holt VERB --help" when they are asked for, so that they are those
# of the holt that is installed.

# The options of a verb, one a line with its argument: "--ro PATH[:TARGET]", "--json".
_holt_options() {
        command holt "$@" --help 2>/dev/null | sed -nE 's/^  (--[a-z-]+)( ([^ ]+))?( .*)?$/\1 \3/p'
}

_holt_verbs() {
        command holt --help 2>/dev/null | sed -nE '/^Verbs:/,/^$/s/^  ([a-z]+) .*/\1/p'
}

_holt_policy_verbs() {
        command holt policy --help 2>/dev/null | sed -nE 's/^  holt policy ([a-z]+).*/\1/p'
}

# The error for a layer that there is none of lists those that can be left out; nothing is run.
_holt_layers() {
        command holt run --allow-degraded '?' -- true 2>&1 | sed -n 's/.*these can: //p'
}

_holt_presets() {
        command holt policy list 2>/dev/null | sed 's/ .*//'
}

# Completes the value of an option from what its help calls it.
_holt_value() {
        case $1 in
        NAME\|FILE)
                mapfile -t COMPREPLY < <(compgen -W "$(_holt_presets)" -- "$2"; compgen -f -- "$2")
                ;;
        LAYER) mapfile -t COMPREPLY < <(compgen -W "$(_holt_layers)" -- "$2") ;;
        NAME\|@GROUP) ;;
        NAME*VALUE*) mapfile -t COMPREPLY < <(compgen -v -- "$2") ;;
        DIR*) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
        PATH* | FILE) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
        *\|*) mapfile -t COMPREPLY < <(compgen -W "${1//|/ }" -- "$2") ;;
        esac
}

_holt() {
        local word=${COMP_WORDS[COMP_CWORD]} i=2 options name argument
        local -a verb=("${COMP_WORDS[1]}")

        COMPREPLY=()
        if ((COMP_CWORD == 1)); then
                mapfile -t COMPREPLY < <(compgen -W "$(_holt_verbs) --help --version" -- "$word")
                return
        fi
        if [[ ${verb[0]} == policy ]]; then
                if ((COMP_CWORD == 2)); then
                        mapfile -t COMPREPLY < <(compgen -W "$(_holt_policy_verbs) --help" -- "$word")
                        return
                fi
                verb+=("${COMP_WORDS[2]}") i=3
        fi

        options=$(_holt_options "${verb[@]}")
        # Past the options comes a command, which has completions of its own.
        for (( ; i < COMP_CWORD; i++)); do
                name=${COMP_WORDS[i]}
                argument=$(sed -n "s/^$name //p" <<<"$options")
                if [[ $name == -- || $name != -* ]]; then
                        [[ ${verb[0]} == run ]] || break
                        [[ $name == -- ]] && ((i++))
                        if declare -F _command_offset >/dev/null; then
                                _command_offset "$i"
                        elif ((i == COMP_CWORD)); then
                                mapfile -t COMPREPLY < <(compgen -c -- "$word")
                        else
                                mapfile -t COMPREPLY < <(compgen -f -- "$word")
                        fi
                        return
                elif [[ -n $argument ]]; then
                        if ((i + 1 == COMP_CWORD)); then
                                _holt_value "$argument" "$word"
                                return
                        fi
                        ((i++))
                fi
        done
        if [[ $word == -* ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$(sed 's/ .*//' <<<"$options")" -- "$word")
        elif [[ ${verb[0]} == run ]]; then
                mapfile -t COMPREPLY < <(compgen -c -- "$word")
        else
                mapfile -t COMPREPLY < <(compgen -f -- "$word")
        fi
}

complete -o filenames -o bashdefault -F _holt holt
