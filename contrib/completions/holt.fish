# fish completion for holt
#
# Verbs, options and their values come from the output of "holt help" and "holt help VERB", so that they match the
# installed holt.

# Typed text is data: it never becomes part of a pattern, a format or a program (sed, grep).

# The help of a verb, which may be two words. A typed word with other characters than letters is no verb, and is never
# passed to holt.
function __holt_help
    for word in $argv
        string match -qr '^[a-z]+$' -- $word; or return
    end
    test (count $argv) -gt 0; and command holt $argv --help 2>/dev/null
end

# Succeeds if a word is an option that takes a value. The other arguments are the rows of __holt_rows.
function __holt_takes_value
    for row in $argv[2..]
        set -l fields (string split -- \t $row)
        test "$fields[1]" = "$argv[1]"; and test -n "$fields[2]"; and return 0
    end
    return 1
end

# Succeeds if the first operand of a verb is the name of a session.
function __holt_takes_session
    test "$argv[1]" != create; and string match -qr '^Usage: holt [a-z]+ NAME' -- (__holt_help $argv[1])[1]
end

# Prints the verb on the command line: "run", "doctor", "policy show". Prints nothing if there is none yet.
function __holt_verb
    set -l words (commandline -opc)
    set -e words[1]
    if test "$words[1]" = policy
        string join -- ' ' $words[1..2]
    else
        printf '%s\n' $words[1]
    end
end

function __holt_verbs
    command holt --help 2>/dev/null | sed -nE '/^Verbs:/,/^$/s/^  ([a-z]+) +/\1\t/p'
end

function __holt_policy_verbs
    command holt policy --help 2>/dev/null | sed -nE 's/^  holt policy ([a-z]+).*/\1/p'
end

function __holt_presets
    command holt policy list 2>/dev/null | sed -E '/^[@-]/d;s/ +/\t/'
end

function __holt_sessions
    command holt ls 2>/dev/null | sed -E '1d;s/^([^ ]+) +(.*)/\1\t\2/'
end

# Prints the words after the verb that are neither options nor values of options.
function __holt_operands
    set -l words (commandline -opc)
    set -l rows (__holt_rows)
    set -l i 3
    while test $i -le (count $words)
        if not string match -q -- '-*' $words[$i]
            printf '%s\n' $words[$i]
        else if __holt_takes_value $words[$i] $rows
            set i (math $i + 1)
        end
        set i (math $i + 1)
    end
end

# Prints the names in a directory of a session. Directories end in "/". With a third argument, only directories are
# printed.
function __holt_list
    command holt files $argv[1] ls -- (test -n "$argv[2]"; and printf '%s\n' $argv[2]; or echo .) 2>/dev/null |
        sed -nE "$argv[3]"'s/^(.)[^ ]+ +[0-9]+ [^ ]+ [^ ]+ /\1/;s/^(l.*) -> .*/\1/;s/^d.*/&\//;s/^.//p'
end

# Completes paths in a session, which stays at rest. Directories end in "/". With a second argument, only directories are
# completed.
function __holt_inside
    set -l above (commandline -ct | string unescape | string match -r '.*/')
    set -l names (__holt_list $argv[1] "$above" $argv[2])
    test (count $names) -gt 0; and printf '%s\n' "$above"$names
end

# Completes files, sessions with a ":", and paths after that.
function __holt_copied
    set -l parts (commandline -ct | string unescape | string split -m 1 :)
    if test (count $parts) -eq 2; and not string match -q '*/*' -- $parts[1]
        set -l above (string match -r '.*/' -- $parts[2])
        set -l names (__holt_list $parts[1] "$above")
        test (count $names) -gt 0; and printf '%s\n' "$parts[1]:$above"$names
        return
    end
    command holt ls 2>/dev/null | sed '1d;s/ .*/:/'
    __fish_complete_path (commandline -ct)
end

# Completes the next operand of a verb for sessions. Returns 1 if the operand is something else.
function __holt_of_session
    set -l verb (__holt_verb)
    set -l operands (__holt_operands)
    if contains -- "$verb" stop rm
        __holt_sessions
    else if test "$verb" = route; and test (count $operands) -eq 0
        string split ' ' 'add list remove'
    else if test "$verb" = route; and test (count $operands) -eq 1
        __holt_sessions
    else if test (count $operands) -eq 0
        __holt_takes_session "$verb"; and __holt_sessions
        test "$verb" = cp; and __holt_copied
    else if test "$verb" = cp
        __holt_copied
    else if test "$verb" = tier; and test (count $operands) -eq 1
        string split ' ' 'standard medium large xlarge'
    else if test "$verb" = files; and test (count $operands) -eq 1
        string split ' ' 'ls cat get put stat mkdir rm mv cp'
    else if test "$verb" = files
        if contains -- "$operands[2]":(count $operands) put:2 get:3
            __fish_complete_path (commandline -ct)
        else
            __holt_inside $operands[1]
        end
        true
    else if test "$verb" = python; and test (count $operands) -eq 1
        __fish_complete_path (commandline -ct)
    else if test "$verb" = kv; and test (count $operands) -eq 1
        string split ' ' 'get set delete keys'
    else if test "$verb" = kv; and test (count $operands) -eq 2
        # This does not start the session.
        contains -- $operands[2] get set delete
        and command holt kv $operands[1] keys --limit 1000 -- (commandline -ct | string unescape) 2>/dev/null
        true
    else if test "$verb" = kill; and test (count $operands) -eq 1
        command holt ps $operands[1] 2>/dev/null | sed -E '1d;/^$/,$d;/^[^ ]+ +ended /d;s/^([^ ]+) +(.*)/\1\t\2/'
    else if contains -- "$verb" logs wait; and test (count $operands) -eq 1
        command holt ps $operands[1] 2>/dev/null | sed -E '1d;/^$/,$d;s/^([^ ]+) +(.*)/\1\t\2/'
    else
        return 1
    end
end

# Completes directories, and files that end in ".json".
function __holt_policy_files
    __fish_complete_path (commandline -ct) | string match -r '^.*(?:/|\.json)(?:\t.*)?$'
end

# Prints NAME, ARGUMENT and help of each option of the verb. If a name is too long for its column, its help is on the
# next line.
function __holt_rows
    set -l verb (string split ' ' (__holt_verb))
    test -n "$verb"; or return
    __holt_help $verb | sed -E '/^  --[^ ]+( [^ ]+)?$/{N;s/\n +/  /;}' |
        sed -nE 's/^  (--?[a-z-]+)( ([^ ]+))?  +(.*)$/\1\t\3\t\4/p'
end

function __holt_options
    for row in (__holt_rows)
        set -l fields (string split -- \t $row)
        printf '%s\t%s\n' $fields[1] $fields[3]
    end
end

# Prints the argument that the option before the cursor takes, by the name that the help gives it.
function __holt_argument
    set -l last (commandline -opc)[-1]
    for row in (__holt_rows)
        set -l fields (string split -- \t $row)
        if test "$fields[1]" = "$last"
            echo $fields[2]
            return
        end
    end
end

# Prints the words that the help of a verb lists below a value.
function __holt_listed
    __holt_help $argv[1] | sed -nE "/^  $argv[2] /,/^(  [^ ]|\$)/s/^ {30}([A-Za-z@].*)/\1/p" |
        string split ' '
end

# Completes the values of that argument.
function __holt_values
    set -l argument (__holt_argument)
    switch "$argument"
        case 'NAME|FILE'
            __holt_presets
            __holt_policy_files
        case 'NAME|@GROUP'
            __holt_listed run @GROUP
            command holt policy syscalls 2>/dev/null | sed -E 's/ +/\t/'
        case ROUTE
            command holt policy routes 2>/dev/null | sed -E 's/ +/\t/'
        case LAYER
            __holt_listed run LAYER
        case 'RULE*'
            # Each set comes after the typed rules in front of its comma.
            set -l before (commandline -ct | string unescape | string match -r '.*,')
            set -l sets (__holt_listed run RULE)
            test (count $sets) -gt 0; and printf '%s\n' "$before"$sets
        case SIG
            # Only the signals that holt accepts; the shell has more. SIG comes before a name only if the word starts
            # with it.
            if string match -q 'SIG*' -- (commandline -ct)
                printf 'SIG%s\n' (__holt_listed kill SIG)
            else
                __holt_listed kill SIG
            end
        case 'NAME*VALUE*'
            set -nx
        case 'DIR*'
            if contains -- (__holt_verb) exec python
                __holt_inside (__holt_operands)[1] '/^d/!d;'
                return
            end
            __fish_complete_directories
        case 'PATH*' 'SRC*' 'FILE*'
            __fish_complete_path (commandline -ct)
        case none '*|*'
            string split '|' $argument
    end
end

# Succeeds if the command of "holt run" or "holt exec NAME" has been reached, and then prints its words.
function __holt_command
    set -l words (commandline -opc)
    contains -- "$words[2]" run exec; or return 1
    set -l rows (__holt_rows)
    set -l i 3
    test "$words[2]" = exec; and set i 4
    while test $i -le (count $words)
        if test "$words[$i]" = --
            set -l next (math $i + 1)
            string join \n -- $words[$next..]
            return 0
        else if not string match -q -- '-*' $words[$i]
            string join \n -- $words[$i..]
            return 0
        else if __holt_takes_value $words[$i] $rows
            set i (math $i + 1)
        end
        set i (math $i + 1)
    end
    return 1
end

# Prints fish's own completions of a command line. "complete -C" runs a command substitution in the command's word (fish
# 3.6), so words with one are never passed to it.
function __holt_delegate
    string match -q '*(*' -- $argv[-1]; and return
    complete -C (string join ' ' -- $argv)
end

function __holt_complete
    set -l words (commandline -opc)
    set -l argument (__holt_argument)
    if test (count $words) -eq 1
        __holt_verbs
    else if test (count $words) -eq 2; and test "$words[2]" = policy
        __holt_policy_verbs
    else if test "$words[2]" = help
        test (count $words) -eq 2; and __holt_verbs
        test "$words[3..]" = policy; and __holt_policy_verbs
    else if set -l command (__holt_command)
        __holt_delegate (string escape -- $command) (commandline -ct)
    else if test -n "$argument"
        __holt_values
    else if string match -q -- '-*' (commandline -ct)
        __holt_options
    else if __holt_of_session
        return
    else if contains -- "$words[2]" run exec
        __holt_delegate (commandline -ct)
    else
        __holt_options
        if test "$words[2..3]" = 'policy show'
            __holt_presets
            __holt_policy_files
        else if test "$words[2..3]" = 'policy routes'
            command holt policy routes 2>/dev/null | sed -E 's/ +/\t/'
        else
            __fish_complete_path (commandline -ct)
        end
    end
end

complete -c holt -f -a '(__holt_complete)'
