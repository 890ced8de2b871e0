#if SQLite
  @_spi(Ledger) import DownpipeCore
  import Foundation
  import GRDB
  import HangLimit
  import Testing

  @testable import DownpipeSQLite

  /// A ledger may contain passwords: other users must not be able to read it.
  @Suite(.endsHangs)
  struct PrivacyTests {
    private func mode(_ path: String) throws -> Int {
      try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    @Test func aNewLedgerIsTheUsersOwn() async throws {
      try await withFolder { folder in
        let path = "\(folder)/above/own/l.sqlite"
        let store = try await SQLiteLedger(path).open()
        _ = try await store.add([try addition("a")], at: start)
        for file in [path, path + "-wal", path + "-shm"] { #expect(try mode(file) == 0o600, "\(file)") }
        #expect(try mode("\(folder)/above/own") == 0o700)
        try await store.close()
      }
    }

    @Test func anOldLedgerIsNarrowed() async throws {
      try await withFolder { folder in
        let path = "\(folder)/l.sqlite"
        let first = try await SQLiteLedger(path).open()
        _ = try await first.add([try addition("a")], at: start)
        for file in [path, path + "-wal", path + "-shm"] {
          try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        }
        let second = try await SQLiteLedger(path).open()
        for file in [path, path + "-wal", path + "-shm"] { #expect(try mode(file) == 0o600, "\(file)") }
        #expect(try await second.record("a") != nil)
        try await second.close()
        try await first.close()
      }
    }

    @Test func anotherProgramsFileAndFolderAreLeftAlone() async throws {
      try await withFolder { folder in
        let path = "\(folder)/other.sqlite"
        let other = try DatabaseQueue(path: path)
        try await other.write { try $0.execute(sql: "CREATE TABLE recipe (name TEXT)") }
        try other.close()
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder)
        await #expect(throws: DownloadError.self) { try await SQLiteLedger(path).open() }
        try await SQLiteLedger("\(folder)/l.sqlite").open().close()
        #expect(try mode(path) == 0o644)
        #expect(try mode(folder) == 0o755)
      }
    }
  }
#endif
