"""p9fs, which makes an fsspec filesystem of py9p, in 9P2000.L over TCP."""
import p9fs

from verbs import main


class Client:
    def __init__(self, _unix, port):
        self.fs = p9fs.P9FileSystem("127.0.0.1", port, "me", version="9P2000.L")

    def ls(self, names):
        return [entry.rstrip("/").rpartition("/")[2] for entry in self.fs.ls("/".join(names), detail=False)]

    def stat(self, names):
        info = self.fs.info("/".join(names))
        return info["size"], info["type"] == "directory"

    def cat(self, names):
        return self.fs.cat_file("/".join(names))


main(Client)
