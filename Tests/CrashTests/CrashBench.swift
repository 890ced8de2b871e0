#if SQLite
  import DownpipeCore
  import DownpipeFiles
  import DownpipeSQLite
  import DownpipePOSIX
  import DownpipeTesting
  import Foundation

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
      /// Whether small steps work on the file, too: its origin, date and permissions, before and after it is moved.
      var hasSmallSteps = false
      /// What the server does beside sending the file.
      var server = Server.sound
      var description: String {
        "\(durability), \(isPlain ? "plain" : isMoved ? "moved" : "published")\(hasSmallSteps ? ", small steps" : "")\(server == .sound ? "" : ", \(server)")"
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
    static let limit = Duration.hangLimit

    let setup: Setup
    let folder: TemporaryFolder

    /// The bytes on the server.
    var content: [UInt8] { setup.isPlain ? Array(Self.content[..<(Self.chunkSize / 2)]) : Self.content }
    /// The bytes to be published.
    var reference: [UInt8] { setup.isPlain ? content : content.map { ~$0 } }
    var root: String { folder.path("disk/store") }
    var published: String { setup.isMoved ? folder.path("disk/films") : root }
    var ledgerFolder: String { folder.path("ledger") }
    private var ledger: String { ledgerFolder + "/ledger.sqlite" }

    /// - Parameter ledger: an empty ledger to start with; `nil` creates a new one.
    init(_ setup: Setup, ledger template: String?) throws {
      self.setup = setup
      folder = try TemporaryFolder()
      for name in ["disk", "ledger", "graveyard"] {
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
      let (root, ledger, setup, content) = (root, ledger, setup, content)
      let options = DownloaderOptions(
        time: pace, random: { 0.5 },
        checkpoints: CheckpointPolicy(bytes: Int64(Self.chunkSize), interval: Pace.never),
        progressInterval: Pace.tick, lease: Pace.lease)
      return try await Downloader(options: options) {
        PacedSource(
          content, former: setup.server == .changing ? Self.former : nil, chunkSize: Self.chunkSize, cut: cut,
          pace: pace,
          decoder: setup.server == .coding ? Invert(system: system) : nil)
        Retry(.exponential(attempts: 5))
        FileStore(root, durability: setup.durability, system: system)
        PacedLedger(base: SQLiteLedger(ledger, durability: setup.durability, lockTimeout: .zero), pace: pace)
        if !setup.isPlain, setup.server != .coding { Invert(system: system) }
        if setup.hasSmallSteps { Quarantine(system: system) }
        if setup.isMoved { MoveInto(moved, durability: setup.durability, system: system) }
        if setup.hasSmallSteps { SetModificationDate(system: system) }
        if setup.hasSmallSteps, let permissions = try? SetPermissions(0o640, system: system) { permissions }
      }
    }

    func request() throws -> DownloadRequest {
      try DownloadRequest("http://a/film", id: Self.id, destination: .init(name: Self.name))
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
      guard let name = try leftovers().first(where: { $0.hasSuffix(".part") }) else { return nil }
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
      let bytes = FileManager.default.contents(atPath: published + "/" + Self.name).map([UInt8].init)
      guard bytes == reference else {
        throw Wrong("the published file has wrong bytes, \(bytes?.count ?? -1) of \(reference.count)")
      }
    }

    private func publishedFiles() throws -> [String] {
      let all = (try? FileManager.default.contentsOfDirectory(atPath: published)) ?? []
      return all.filter { $0 != ".downpipe" }.sorted()
    }

    /// The files and claims that are left in the store's own folder.
    func leftovers() throws -> [String] {
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
