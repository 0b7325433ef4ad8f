"""python-9p, whose codec is that of plan9port, in 9P2000 over the unix socket."""
from py9p import Client as Connection, decode_dir

from verbs import main

DMDIR = 0x8000_0000


class Client:
    def __init__(self, unix, _port):
        self.connection = Connection.connect_unix(unix)
        self.connection.negotiate()
        self.connection.attach(fid=0, uname="me")

    def walk(self, names):
        walked = self.connection.walk(0, 1, names)
        if len(walked) < len(names):
            raise FileNotFoundError("/".join(names))

    def stat(self, names):
        self.walk(names)
        entry = self.connection.stat(1)
        return entry.length, bool(entry.mode & DMDIR)

    def cat(self, names):
        self.walk(names)
        self.connection.open(1)
        content = b""
        while chunk := self.connection.read(1, offset=len(content)):
            content += chunk
        self.connection.clunk(1)
        return content

    def ls(self, names):
        records, listed = self.cat(names), []
        while records:
            size = 2 + int.from_bytes(records[:2], "little")
            listed.append(decode_dir(records[:size]).name)
            records = records[size:]
        return listed


main(Client)
