"""py9p, the client of its own, in 9P2000 over TCP."""
import socket

from py9p import py9p

from verbs import main


class Client:
    def __init__(self, _unix, port):
        stream = socket.create_connection(("127.0.0.1", port))
        self.py9p = py9p.Client(stream, py9p.Credentials(user="me"), ver=py9p.Version.v9P2000)

    def ls(self, names):
        self.py9p.open("/" + "/".join(names))
        entries = self.py9p.lsdir()
        self.py9p.close()
        return [entry.name.decode() for entry in entries]

    def stat(self, names):
        [entry] = self.py9p.stat("/" + "/".join(names))
        return entry.length, bool(entry.mode & py9p.DMDIR)

    def cat(self, names):
        self.py9p.open("/" + "/".join(names))
        content = b"".join(iter(lambda: self.py9p.read(8168), b""))
        self.py9p.close()
        return content


main(Client)
