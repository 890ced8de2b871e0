#if SQLite
  @_spi(Ledger) import DownpipeCore
  import DownpipeSQLite
  import DownpipePOSIX
  import DownpipeTesting
  import Foundation
  import Synchronization

  @testable import DownpipeArchive
  @testable import DownpipeChecksum
  @testable import DownpipeFiles

  /// One download in one folder: its disturbed runs, and the run that completes it.
  final class CrashBench: Sendable {
    /// The download and its options.
    struct Setup: Sendable, Hashable, CustomStringConvertible {
      var durability: Durability
      /// Whether a step moves the file out of the store, or the store publishes it.
      var isMoved: Bool
      /// Whether it is small and has no step. Then its file has no name before it is published, where the system
      /// supports that.
      var isPlain = false
      var steps = Steps.one
      /// What the server does beside sending the file.
      var server = Server.sound
      var description: String {
        "\(durability), \(isPlain ? "plain" : isMoved ? "moved" : "published")\(steps == .one ? "" : ", \(steps) steps")\(server == .sound ? "" : ", \(server)")"
      }

      /// What works on the file before it is published or moved.
      enum Steps: Sendable {
        /// One that changes its bytes.
        case one
        /// Also those that record its origin, date and permissions, before and after it is moved.
        case small
        /// Also those that verify it, write the digests of its pieces, name it, and run code of the user.
        case all
        /// The file is an archive, which is verified, unpacked and named.
        case unpacking
      }

      enum Server: Sendable {
        case sound
        /// It sends the file in a content coding: the bytes are inverted by the source's decoder instead of a step.
        case coding
        /// It sends another file until the first connection breaks, and always sends the whole file.
        case changing
      }
    }

    static let chunkSize = 40 << 10
    /// Five checkpoints and a remainder.
    static let content = DownloadFixtures.pattern(size: 5 * chunkSize + 5000)
    /// Another file, which begins with the same bytes.
    static let former = content[..<50_000] + content[50_000...].map { ~$0 }[...]
    static let id = DownloadID("film")
    static let name = "film.bin"
    /// The name of a file that a step renames.
    private static let firstName = "film.part1"
    static let limit = Duration.hangLimit

    /// The files in the archive.
    private static let tree = ["a": 70_000, "b/c": 0, "b/d": 90_000, "e": 1].mapValues {
      DownloadFixtures.pattern(size: $0, seed: UInt64($0))
    }
    /// The archive with these files.
    private static let archive = Result {
      let folder = try TemporaryFolder()
      for (name, bytes) in tree { try folder.write(bytes, to: name) }
      let process = Process()
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = ["tar", "-C", folder.path, "-cf", folder.path("out"), "a", "b", "e"]
      try process.run()
      process.waitUntilExit()
      guard process.terminationStatus == 0 else { throw Wrong("tar does not run") }
      return try folder.read("out")
    }

    let setup: Setup
    let folder: TemporaryFolder
    /// The bytes on the server.
    let content: [UInt8]
    /// How often the code of the user was run.
    let runs = Atomic(0)

    /// The bytes to be published.
    var reference: [UInt8] { setup.isPlain ? content : content.map { ~$0 } }
    var root: String { folder.path("disk/store") }
    var published: String { setup.isMoved ? folder.path("disk/films") : root }
    var ledgerFolder: String { folder.path("ledger") }
    private var ledger: String { ledgerFolder + "/ledger.sqlite" }

    /// - Parameter ledger: an empty ledger to start with; `nil` creates a new one.
    init(_ setup: Setup, ledger template: String?) throws {
      self.setup = setup
      content =
        setup.isPlain
        ? Array(Self.content[..<(Self.chunkSize / 2)])
        : setup.steps == .unpacking ? try Self.archive.get() : Self.content
      folder = try TemporaryFolder()
      for name in ["disk", "ledger", "graveyard", "pieces"] {
        try FileManager.default.createDirectory(atPath: folder.path(name), withIntermediateDirectories: false)
      }
      if let template { try FileManager.default.copyItem(atPath: template, toPath: ledger) }
    }

    /// Creates an empty ledger as a start for other benches.
    static func emptyLedger(in folder: TemporaryFolder) async throws -> String {
      let path = folder.path("empty.sqlite")
      try await SQLiteLedger(path).open().close()
      return path
    }

    func medium() -> Medium {
      Medium(root: folder.path("disk"), published: published, ledger: ledgerFolder, graveyard: folder.path("graveyard"))
    }

    /// Starts a downloader on the folder.
    func start(_ disk: FaultyDisk, pace: Pace, cut: Int? = nil) async throws -> Downloader {
      let system = disk.system
      let moved = folder.path("disk/films")
      let pieces = folder.path("pieces")
      let (root, ledger, setup, content) = (root, ledger, setup, content)
      let options = DownloaderOptions(
        time: pace, random: { 0.5 },
        checkpoints: CheckpointPolicy(bytes: Int64(Self.chunkSize), interval: Pace.never),
        progressInterval: Pace.tick, lease: Pace.lease)
      let piecesStep = try WritePieceDigests(
        .sha256, length: Int64(Self.chunkSize), into: pieces, suffix: ".pieces", system: system)
      let countRuns = Then { [self] _, _ in _ = runs.add(1, ordering: .relaxed) }
      #if Archive
        if setup.steps == .unpacking {
          return try await Downloader(options: options) {
            PacedSource(content, chunkSize: Self.chunkSize, cut: cut, pace: pace)
            Retry(.exponential(attempts: 5))
            FileStore(root, durability: setup.durability, system: system)
            PacedLedger(base: SQLiteLedger(ledger, durability: setup.durability, lockTimeout: .zero), pace: pace)
            VerifyChecksum()
            piecesStep
            Unarchive(system: system)
            Rename { _ in Self.name }
            if setup.isMoved { MoveInto(moved, durability: setup.durability, system: system) }
            countRuns
          }
        }
      #endif
      return try await Downloader(options: options) {
        PacedSource(
          content, former: setup.server == .changing ? Self.former : nil, chunkSize: Self.chunkSize, cut: cut,
          pace: pace,
          decoder: setup.server == .coding ? Invert(system: system) : nil)
        Retry(.exponential(attempts: 5))
        FileStore(root, durability: setup.durability, system: system)
        PacedLedger(base: SQLiteLedger(ledger, durability: setup.durability, lockTimeout: .zero), pace: pace)
        if setup.steps == .all {
          VerifyChecksum()
          piecesStep
        }
        if !setup.isPlain, setup.server != .coding { Invert(system: system) }
        if setup.steps == .all { Rename { _ in Self.name } }
        if [.all, .small].contains(setup.steps) { Quarantine(system: system) }
        if setup.isMoved { MoveInto(moved, durability: setup.durability, system: system) }
        if [.all, .small].contains(setup.steps) { SetModificationDate(system: system) }
        if [.all, .small].contains(setup.steps), let permissions = try? SetPermissions(0o640, system: system) {
          permissions
        }
        if setup.steps == .all { countRuns }
      }
    }

    func request() throws -> DownloadRequest {
      var computation = try DigestComputation(.sha256)
      let bytes = content
      computation.update(bytes.span.bytes)
      var request = try DownloadRequest("http://a/film", id: Self.id, destination: .init(name: Self.name))
      if [.all, .unpacking].contains(setup.steps) {
        request.destination = .init(name: Self.firstName, nameUse: .fallback)
        request.expectedDigests = [computation.finalize()]
      }
      return request
    }

    /// The record, read through a separate opening of the ledger.
    func record() async throws -> DownloadRecord? {
      let store = try await SQLiteLedger(ledger).open()
      let record: DownloadRecord?
      do {
        record = try await store.record(Self.id)
      } catch {
        try? await store.close()
        throw error
      }
      try await store.close()
      return record
    }

    /// Removes the end of the partial, as a loss of power does with bytes that were not flushed.
    ///
    /// - Returns: what was lost, for messages; `nil` when there is no partial.
    func losePartial(leavingZeros: Bool, by generator: inout SeededGenerator) throws -> String? {
      guard let name = try removals().first(where: { $0.hasSuffix(".part") }) else { return nil }
      let file = root + "/.downpipe/" + name
      let bytes = FileManager.default.contents(atPath: file).map([UInt8].init) ?? []
      let left = Int.random(in: 0...bytes.count, using: &generator)
      let zeros = [UInt8](repeating: 0, count: leavingZeros ? bytes.count - left : 0)
      try Medium.overwrite(file, with: bytes[..<left] + zeros)
      return "the partial has \(left) of \(bytes.count) bytes\(leavingZeros ? ", then zeros" : "")"
    }

    // MARK: Whether all is well

    /// Checks that the expected file is published completely, or no file.
    func check(isFinished: Bool) throws {
      let files = try publishedFiles()
      if !isFinished, files.isEmpty { return }
      guard files == [Self.name] else { throw Wrong("there is published: \(files)") }
      if isFinished, [.all, .unpacking].contains(setup.steps) { try checkPieces() }
      if setup.steps == .unpacking { return try checkTree() }
      let bytes = FileManager.default.contents(atPath: published + "/" + Self.name).map([UInt8].init)
      guard bytes == reference else {
        throw Wrong("the published file has wrong bytes, \(bytes?.count ?? -1) of \(reference.count)")
      }
    }

    private func checkTree() throws {
      let root = published + "/" + Self.name
      let found = try FileManager.default.subpathsOfDirectory(atPath: root).sorted()
      guard found == (Self.tree.keys + ["b"]).sorted() else { throw Wrong("the published tree has: \(found)") }
      for (name, bytes) in Self.tree {
        guard FileManager.default.contents(atPath: root + "/" + name).map([UInt8].init) == bytes else {
          throw Wrong("\(name) of the published tree has wrong bytes")
        }
      }
    }

    private func checkPieces() throws {
      let names = try FileManager.default.contentsOfDirectory(atPath: folder.path("pieces"))
      guard names == [Self.firstName + ".pieces"] else {
        throw Wrong("beside the digests of pieces there is: \(names)")
      }
      let written = try JSONDecoder().decode(PieceDigests.self, from: Data(folder.read("pieces/" + names[0])))
      guard written.fit(Int64(content.count)), written.length == Int64(Self.chunkSize) else {
        throw Wrong("the digests are of \(written.count) pieces of \(written.length) bytes")
      }
      for index in 0..<written.count {
        let piece = content.dropFirst(index * Self.chunkSize).prefix(Self.chunkSize)
        var computation = try DigestComputation(.sha256)
        computation.update(piece.span.bytes)
        guard written.digest(at: index) == computation.finalize() else {
          throw Wrong("the digest of piece \(index) is wrong")
        }
      }
    }

    private func publishedFiles() throws -> [String] {
      let all = (try? FileManager.default.contentsOfDirectory(atPath: published)) ?? []
      return all.filter { $0 != ".downpipe" }.sorted()
    }

    /// The files and claims that are left in the store's own folder.
    func removals() throws -> [String] {
      let own = root + "/.downpipe"
      let all = (try? FileManager.default.subpathsOfDirectory(atPath: own)) ?? []
      // The name of the store stays.
      return try all.sorted().filter { name in
        if name == "name" { return false }
        let attributes = try FileManager.default.attributesOfItem(atPath: own + "/" + name)
        return attributes[.type] as? FileAttributeType != .typeDirectory
      }
    }
  }

  /// A violation of a promise.
  struct Wrong: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }
#endif
