# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_9agents_global_optspecs
    string join \n unix= tcp= fd= no-post name= allow-remote allow-move zmx= driver= root= proc= demo fixture= h/help V/version
end

function __fish_9agents_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_9agents_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_9agents_using_subcommand
    set -l cmd (__fish_9agents_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c 9agents -n "__fish_9agents_needs_command" -l unix -d 'Also listen on a unix socket at PATH; may be repeated' -r -F
complete -c 9agents -n "__fish_9agents_needs_command" -l tcp -d 'Also listen on TCP, where only this user\'s own processes are let in; port 0 takes a free one; may be repeated' -r
complete -c 9agents -n "__fish_9agents_needs_command" -l fd -d 'Serve one session over the connected stream on descriptor N, and end with it; 0 may be a pipe, with 1 for the answers' -r
complete -c 9agents -n "__fish_9agents_needs_command" -l name -d 'Post under NAME: listen on $XDG_RUNTIME_DIR/9p/NAME' -r
complete -c 9agents -n "__fish_9agents_needs_command" -l zmx -d 'The zmx that agents are moved with [default: the one in PATH]' -r -F
complete -c 9agents -n "__fish_9agents_needs_command" -l driver -d 'What carries the bytes' -r -f -a "auto\t'The best there is'
uring\t'io_uring, or nothing'
blocking\t'A thread for each connection'"
complete -c 9agents -n "__fish_9agents_needs_command" -l root -d 'Read the harness NAME (claude, codex, omp, hermes, dsh) from the directory PATH; may be repeated' -r
complete -c 9agents -n "__fish_9agents_needs_command" -l proc -d 'Read processes from DIR instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c 9agents -n "__fish_9agents_needs_command" -l fixture -d 'Show the machine that the script FILE describes instead of this one' -r -F
complete -c 9agents -n "__fish_9agents_needs_command" -l no-post -d 'Do not post the socket under a name'
complete -c 9agents -n "__fish_9agents_needs_command" -l allow-remote -d 'Let --tcp listen on an address that other machines reach. Whoever connects there sees everything'
complete -c 9agents -n "__fish_9agents_needs_command" -l allow-move -d 'Let clients move agents between zmx sessions, by writing a name into an agent\'s zmx. Never over TCP'
complete -c 9agents -n "__fish_9agents_needs_command" -l demo -d 'Show a small invented machine instead of this one, with an agent of each harness'
complete -c 9agents -n "__fish_9agents_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c 9agents -n "__fish_9agents_needs_command" -s V -l version -d 'Print version'
complete -c 9agents -n "__fish_9agents_needs_command" -f -a "serve" -d 'Serve the tree until SIGTERM or SIGINT (what is done without a verb)'
complete -c 9agents -n "__fish_9agents_needs_command" -f -a "ls" -d 'List directories'
complete -c 9agents -n "__fish_9agents_needs_command" -f -a "ps" -d 'List the agents that are running'
complete -c 9agents -n "__fish_9agents_needs_command" -f -a "cat" -d 'Print the content of files'
complete -c 9agents -n "__fish_9agents_needs_command" -f -a "stat" -d 'Print what is known of files'
complete -c 9agents -n "__fish_9agents_needs_command" -f -a "read" -d 'Print one file as it comes: one read at a time, each passed on at once'
complete -c 9agents -n "__fish_9agents_needs_command" -f -a "write" -d 'Replace the content of one file with stdin'
complete -c 9agents -n "__fish_9agents_needs_command" -f -a "launch" -d 'Become a program, in a session of its own: what the server does to start one'
complete -c 9agents -n "__fish_9agents_needs_command" -f -a "version" -d 'Print the version'
complete -c 9agents -n "__fish_9agents_needs_command" -f -a "help" -d 'Explain the tree, and how to reach it; or a verb'
complete -c 9agents -n "__fish_9agents_needs_command" -f -a "completions" -d 'Print a script that completes this command line, for a shell to load'
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l unix -d 'Also listen on a unix socket at PATH; may be repeated' -r -F
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l tcp -d 'Also listen on TCP, where only this user\'s own processes are let in; port 0 takes a free one; may be repeated' -r
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l fd -d 'Serve one session over the connected stream on descriptor N, and end with it; 0 may be a pipe, with 1 for the answers' -r
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l name -d 'Post under NAME: listen on $XDG_RUNTIME_DIR/9p/NAME' -r
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l zmx -d 'The zmx that agents are moved with [default: the one in PATH]' -r -F
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l driver -d 'What carries the bytes' -r -f -a "auto\t'The best there is'
uring\t'io_uring, or nothing'
blocking\t'A thread for each connection'"
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l root -d 'Read the harness NAME (claude, codex, omp, hermes, dsh) from the directory PATH; may be repeated' -r
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l proc -d 'Read processes from DIR instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l fixture -d 'Show the machine that the script FILE describes instead of this one' -r -F
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l no-post -d 'Do not post the socket under a name'
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l allow-remote -d 'Let --tcp listen on an address that other machines reach. Whoever connects there sees everything'
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l allow-move -d 'Let clients move agents between zmx sessions, by writing a name into an agent\'s zmx. Never over TCP'
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -l demo -d 'Show a small invented machine instead of this one, with an agent of each harness'
complete -c 9agents -n "__fish_9agents_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c 9agents -n "__fish_9agents_using_subcommand ls" -s a -l addr -d 'Ask the server at ADDR: unix!PATH, tcp!HOST!PORT, or the path of a socket [default: the posted one, else this process]' -r
complete -c 9agents -n "__fish_9agents_using_subcommand ls" -l root -d 'Read the harness NAME (claude, codex, omp, hermes, dsh) from the directory PATH; may be repeated' -r
complete -c 9agents -n "__fish_9agents_using_subcommand ls" -l proc -d 'Read processes from DIR instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c 9agents -n "__fish_9agents_using_subcommand ls" -l fixture -d 'Show the machine that the script FILE describes instead of this one' -r -F
complete -c 9agents -n "__fish_9agents_using_subcommand ls" -s l -d 'Print mode, owner, length, time and name'
complete -c 9agents -n "__fish_9agents_using_subcommand ls" -s R -d 'List the directories in directories, too'
complete -c 9agents -n "__fish_9agents_using_subcommand ls" -l demo -d 'Show a small invented machine instead of this one, with an agent of each harness'
complete -c 9agents -n "__fish_9agents_using_subcommand ls" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c 9agents -n "__fish_9agents_using_subcommand ps" -s a -l addr -d 'Ask the server at ADDR: unix!PATH, tcp!HOST!PORT, or the path of a socket [default: the posted one, else this process]' -r
complete -c 9agents -n "__fish_9agents_using_subcommand ps" -l root -d 'Read the harness NAME (claude, codex, omp, hermes, dsh) from the directory PATH; may be repeated' -r
complete -c 9agents -n "__fish_9agents_using_subcommand ps" -l proc -d 'Read processes from DIR instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c 9agents -n "__fish_9agents_using_subcommand ps" -l fixture -d 'Show the machine that the script FILE describes instead of this one' -r -F
complete -c 9agents -n "__fish_9agents_using_subcommand ps" -s w -d 'Cut nothing'
complete -c 9agents -n "__fish_9agents_using_subcommand ps" -l json -d 'Print an array of objects, for scripts: what is not known is null, and `started` is in seconds since 1970'
complete -c 9agents -n "__fish_9agents_using_subcommand ps" -l demo -d 'Show a small invented machine instead of this one, with an agent of each harness'
complete -c 9agents -n "__fish_9agents_using_subcommand ps" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c 9agents -n "__fish_9agents_using_subcommand cat" -s a -l addr -d 'Ask the server at ADDR: unix!PATH, tcp!HOST!PORT, or the path of a socket [default: the posted one, else this process]' -r
complete -c 9agents -n "__fish_9agents_using_subcommand cat" -l root -d 'Read the harness NAME (claude, codex, omp, hermes, dsh) from the directory PATH; may be repeated' -r
complete -c 9agents -n "__fish_9agents_using_subcommand cat" -l proc -d 'Read processes from DIR instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c 9agents -n "__fish_9agents_using_subcommand cat" -l fixture -d 'Show the machine that the script FILE describes instead of this one' -r -F
complete -c 9agents -n "__fish_9agents_using_subcommand cat" -l demo -d 'Show a small invented machine instead of this one, with an agent of each harness'
complete -c 9agents -n "__fish_9agents_using_subcommand cat" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c 9agents -n "__fish_9agents_using_subcommand stat" -s a -l addr -d 'Ask the server at ADDR: unix!PATH, tcp!HOST!PORT, or the path of a socket [default: the posted one, else this process]' -r
complete -c 9agents -n "__fish_9agents_using_subcommand stat" -l root -d 'Read the harness NAME (claude, codex, omp, hermes, dsh) from the directory PATH; may be repeated' -r
complete -c 9agents -n "__fish_9agents_using_subcommand stat" -l proc -d 'Read processes from DIR instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c 9agents -n "__fish_9agents_using_subcommand stat" -l fixture -d 'Show the machine that the script FILE describes instead of this one' -r -F
complete -c 9agents -n "__fish_9agents_using_subcommand stat" -l demo -d 'Show a small invented machine instead of this one, with an agent of each harness'
complete -c 9agents -n "__fish_9agents_using_subcommand stat" -s h -l help -d 'Print help'
complete -c 9agents -n "__fish_9agents_using_subcommand read" -s a -l addr -d 'Ask the server at ADDR: unix!PATH, tcp!HOST!PORT, or the path of a socket [default: the posted one, else this process]' -r
complete -c 9agents -n "__fish_9agents_using_subcommand read" -l root -d 'Read the harness NAME (claude, codex, omp, hermes, dsh) from the directory PATH; may be repeated' -r
complete -c 9agents -n "__fish_9agents_using_subcommand read" -l proc -d 'Read processes from DIR instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c 9agents -n "__fish_9agents_using_subcommand read" -l fixture -d 'Show the machine that the script FILE describes instead of this one' -r -F
complete -c 9agents -n "__fish_9agents_using_subcommand read" -l demo -d 'Show a small invented machine instead of this one, with an agent of each harness'
complete -c 9agents -n "__fish_9agents_using_subcommand read" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c 9agents -n "__fish_9agents_using_subcommand write" -s a -l addr -d 'Ask the server at ADDR: unix!PATH, tcp!HOST!PORT, or the path of a socket [default: the posted one, else this process]' -r
complete -c 9agents -n "__fish_9agents_using_subcommand write" -l root -d 'Read the harness NAME (claude, codex, omp, hermes, dsh) from the directory PATH; may be repeated' -r
complete -c 9agents -n "__fish_9agents_using_subcommand write" -l proc -d 'Read processes from DIR instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c 9agents -n "__fish_9agents_using_subcommand write" -l fixture -d 'Show the machine that the script FILE describes instead of this one' -r -F
complete -c 9agents -n "__fish_9agents_using_subcommand write" -l demo -d 'Show a small invented machine instead of this one, with an agent of each harness'
complete -c 9agents -n "__fish_9agents_using_subcommand write" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c 9agents -n "__fish_9agents_using_subcommand launch" -l descriptors -d 'How many descriptors it may have, unless it raises that itself' -r
complete -c 9agents -n "__fish_9agents_using_subcommand launch" -s h -l help -d 'Print help'
complete -c 9agents -n "__fish_9agents_using_subcommand version" -l verbose -d 'Also print what this machine offers, and what of it would be used'
complete -c 9agents -n "__fish_9agents_using_subcommand version" -s h -l help -d 'Print help'
complete -c 9agents -n "__fish_9agents_using_subcommand help" -s h -l help -d 'Print help'
complete -c 9agents -n "__fish_9agents_using_subcommand completions" -s h -l help -d 'Print help'
