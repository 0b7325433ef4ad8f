"""What every client here is asked, as a program: `CLIENT UNIX-SOCKET TCP-PORT ls|stat|cat PATH`.

`ls` prints the names in a directory, `stat` a length and `dir` or `file`, `cat` what is in a file; what the client refuses ends
in an exit status. A client is a function of the two addresses that yields an object with these three verbs.
"""
import sys


def main(client):
    unix, port, verb, path = sys.argv[1:]
    client = client(unix, int(port))
    names = [name for name in path.split("/") if name]
    if verb == "ls":
        for name in client.ls(names):
            print(name)
    elif verb == "stat":
        length, is_dir = client.stat(names)
        print(length, "dir" if is_dir else "file")
    else:
        sys.stdout.buffer.write(client.cat(names))
