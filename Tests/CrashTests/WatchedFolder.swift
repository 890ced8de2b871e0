#if SQLite
  import CFaultyVFS
  import Synchronization

  /// Lets SQLite in this process ask a ``FaultyDisk`` about calls on files below one folder.
  final class WatchedFolder: Sendable {
    private struct Watched: Sendable {
      var last: UInt64 = 0
      var disks: [UInt64: FaultyDisk] = [:]
    }
    private static let watched = Mutex(Watched())

    private let number: UInt64

    init(_ path: String, on disk: FaultyDisk) throws {
      let code = faulty_vfs_install { number, call, path, size in
        guard let path, let disk = WatchedFolder.watched.withLock({ $0.disks[number] }) else {
          return faulty_vfs_verdict(code: 0, torn_bytes: 0)
        }
        return disk.verdict(call, String(cString: path), size)
      }
      guard code == 0 else { throw Refusal(code: code) }
      number = Self.watched.withLock { state in
        state.last += 1
        state.disks[state.last] = disk
        return state.last
      }
      guard faulty_vfs_watch(path + "/", number) else { throw Refusal(code: -1) }
    }

    deinit { end() }

    func end() {
      faulty_vfs_unwatch(number)
      _ = Self.watched.withLock { $0.disks.removeValue(forKey: number) }
    }

    struct Refusal: Error {
      /// The result code of SQLite; -1 when too many folders are watched.
      let code: Int32
    }
  }
#endif
