//! The numbers that fields of messages are made of.
//!
//! 9P2000's are those of open(5) and stat(5); 9P2000.L's are the numbers of Linux on most machines
//! (`include/uapi/asm-generic`), whatever machine either side runs on.

/// Mode of Topen: read.
pub const OREAD: u8 = 0x00;
/// Mode of Topen: write.
pub const OWRITE: u8 = 0x01;
/// Mode of Topen: read and write.
pub const ORDWR: u8 = 0x02;
/// Mode of Topen: execute, which reads.
pub const OEXEC: u8 = 0x03;
/// The part of Topen's mode that is one of [`OREAD`], [`OWRITE`], [`ORDWR`], [`OEXEC`].
pub const OMASK: u8 = 0x03;
/// Bit of Topen's mode: cut the file to nothing first.
pub const OTRUNC: u8 = 0x10;
/// Bit of Topen's mode: close on exec; a client's own matter.
pub const OCEXEC: u8 = 0x20;
/// Bit of Topen's mode: remove the file when the fid is clunked.
pub const ORCLOSE: u8 = 0x40;

/// Mode bit of a directory.
pub const DMDIR: u32 = 0x8000_0000;
/// Mode bit of a file that only grows.
pub const DMAPPEND: u32 = 0x4000_0000;
/// Mode bit of a file only one may have open.
pub const DMEXCL: u32 = 0x2000_0000;
/// Mode bit of a mounted channel.
pub const DMMOUNT: u32 = 0x1000_0000;
/// Mode bit of an authentication file.
pub const DMAUTH: u32 = 0x0800_0000;
/// Mode bit of a temporary file.
pub const DMTMP: u32 = 0x0400_0000;
/// Mode bit of a symbolic link (9P2000.u).
pub const DMSYMLINK: u32 = 0x0200_0000;
/// Mode bit of a device (9P2000.u).
pub const DMDEVICE: u32 = 0x0080_0000;
/// Mode bit of a named pipe (9P2000.u).
pub const DMNAMEDPIPE: u32 = 0x0020_0000;
/// Mode bit of a socket (9P2000.u).
pub const DMSOCKET: u32 = 0x0010_0000;

/// The part of Tlopen's flags that says what is opened for: [`O_RDONLY`], [`O_WRONLY`], [`O_RDWR`].
pub const O_ACCMODE: u32 = 0o3;
/// Flags of Tlopen: read.
pub const O_RDONLY: u32 = 0o0;
/// Flags of Tlopen: write.
pub const O_WRONLY: u32 = 0o1;
/// Flags of Tlopen: read and write.
pub const O_RDWR: u32 = 0o2;
/// Flag of Tlopen: make the file if it is not there.
pub const O_CREAT: u32 = 0o100;
/// Flag of Tlopen: refuse if the file is there.
pub const O_EXCL: u32 = 0o200;
/// Flag of Tlopen: cut the file to nothing first.
pub const O_TRUNC: u32 = 0o1000;
/// Flag of Tlopen: every write goes to the end.
pub const O_APPEND: u32 = 0o2000;
/// Flag of Tlopen: do not wait.
pub const O_NONBLOCK: u32 = 0o4000;
/// Flag of Tlopen: large files; the kernel always sets it.
pub const O_LARGEFILE: u32 = 0o100_000;
/// Flag of Tlopen: refuse what is not a directory.
pub const O_DIRECTORY: u32 = 0o200_000;
/// Flag of Tlopen: refuse a symbolic link.
pub const O_NOFOLLOW: u32 = 0o400_000;
/// Flag of Tlopen: close on exec; a client's own matter.
pub const O_CLOEXEC: u32 = 0o2_000_000;

/// The part of a Linux mode that says what kind of file it is (inode(7)).
pub const S_IFMT: u32 = 0o170_000;
/// Kind of a Linux mode: directory.
pub const S_IFDIR: u32 = 0o040_000;
/// Kind of a Linux mode: regular file.
pub const S_IFREG: u32 = 0o100_000;

/// Kind of a directory entry: directory (readdir(3)).
pub const DT_DIR: u8 = 4;
/// Kind of a directory entry: regular file (readdir(3)).
pub const DT_REG: u8 = 8;

/// Tgetattr: mode.
pub const GETATTR_MODE: u64 = 0x0001;
/// Tgetattr: hard links.
pub const GETATTR_NLINK: u64 = 0x0002;
/// Tgetattr: owner.
pub const GETATTR_UID: u64 = 0x0004;
/// Tgetattr: group.
pub const GETATTR_GID: u64 = 0x0008;
/// Tgetattr: device numbers.
pub const GETATTR_RDEV: u64 = 0x0010;
/// Tgetattr: time of the last access.
pub const GETATTR_ATIME: u64 = 0x0020;
/// Tgetattr: time of the last change of content.
pub const GETATTR_MTIME: u64 = 0x0040;
/// Tgetattr: time of the last change of content or attributes.
pub const GETATTR_CTIME: u64 = 0x0080;
/// Tgetattr: inode number, which is the qid's path.
pub const GETATTR_INO: u64 = 0x0100;
/// Tgetattr: length.
pub const GETATTR_SIZE: u64 = 0x0200;
/// Tgetattr: space taken.
pub const GETATTR_BLOCKS: u64 = 0x0400;
/// Tgetattr: time of birth.
pub const GETATTR_BTIME: u64 = 0x0800;
/// Tgetattr: inode generation.
pub const GETATTR_GEN: u64 = 0x1000;
/// Tgetattr: version of the content.
pub const GETATTR_DATA_VERSION: u64 = 0x2000;
/// Tgetattr: everything a `struct stat` holds.
pub const GETATTR_BASIC: u64 = 0x07ff;
/// Tgetattr: everything.
pub const GETATTR_ALL: u64 = 0x3fff;

/// Tsetattr: set the mode.
pub const SETATTR_MODE: u32 = 0x0001;
/// Tsetattr: set the owner.
pub const SETATTR_UID: u32 = 0x0002;
/// Tsetattr: set the group.
pub const SETATTR_GID: u32 = 0x0004;
/// Tsetattr: set the length.
pub const SETATTR_SIZE: u32 = 0x0008;
/// Tsetattr: set the time of the last access, to now unless [`SETATTR_ATIME_SET`].
pub const SETATTR_ATIME: u32 = 0x0010;
/// Tsetattr: set the time of the last change of content, to now unless [`SETATTR_MTIME_SET`].
pub const SETATTR_MTIME: u32 = 0x0020;
/// Tsetattr: set the time of the last change of attributes, to now.
pub const SETATTR_CTIME: u32 = 0x0040;
/// Tsetattr: the time of the last access is the message's.
pub const SETATTR_ATIME_SET: u32 = 0x0080;
/// Tsetattr: the time of the last change of content is the message's.
pub const SETATTR_MTIME_SET: u32 = 0x0100;

/// Status of an Rlock: the lock is held.
pub const LOCK_SUCCESS: u8 = 0;
/// Status of an Rlock: another holds it.
pub const LOCK_BLOCKED: u8 = 1;
/// Status of an Rlock: it cannot be had.
pub const LOCK_ERROR: u8 = 2;

/// The filesystem magic of 9P, for an Rstatfs.
pub const V9FS_MAGIC: u32 = 0x0102_1997;
