import CSystemCalls

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension FileSystem {
  package func rename(_ old: Entry, to new: Entry) throws(SystemError) {
    _ = try withPath(old) { from throws(SystemError) in
      try withPath(new) { to throws(SystemError) in
        try call(.rename, new.name) { renameat(old.folder, from, new.folder, to) }
      }
    }
  }

  /// Renames a file or folder by one call; fails with `EEXIST` when the new name exists, and with an error that
  /// ``SystemError/saysNoExclusiveRename`` recognises where the system cannot do this.
  package func rename(_ old: Entry, toFree new: Entry) throws(SystemError) {
    _ = try withPath(old) { from throws(SystemError) in
      try withPath(new) { to throws(SystemError) in
        try call(.renameToFree, new.name) { downpipe_rename_to_free_name(old.folder, from, new.folder, to) }
      }
    }
  }
}
