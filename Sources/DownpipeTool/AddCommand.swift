import ArgumentParser
import Downpipe
import DownpipeJSON
import Foundation

/// `downpipe add`: adds downloads to a ledger, for other commands to run.
struct AddCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Add downloads to a ledger, and start nothing.",
    discussion: """
      “downpipe work” and “downpipe resume” run them. In a database, they belong to no folder: each goes to the folder of \
      the worker that takes it. Files that the ledger knows as finished stay as they are. One that is gone is fetched again \
      if --directory is the folder where it was.
      """
  )

  @OptionGroup(title: "File options") var input: GetOptions
  @OptionGroup(title: "Options for finished files") var steps: StepOptions
  @OptionGroup(title: "Folder options") var folder: FolderOptions
  @Flag(help: "Apply the rules for links from strangers, as “get --untrusted”.")
  var untrusted = false
  @Flag(help: "Print one JSON object at the end.")
  var json = false
  @OptionGroup var urls: URLOptions

  func validate() throws {
    if input.dryRun { throw ValidationError("--dry-run is an option of “get”") }
    if input.metalink { throw ValidationError("--metalink is an option of “get”: documents are read when it runs") }
    if folder.ledger == "none" { throw ValidationError("--ledger none: this command needs a ledger that lasts") }
  }

  func run() async throws {
    var plan = try input.plan()
    plan.isUntrusted = untrusted
    let list = try plan.inputFile.map(URLList.init)
    // The folder may be one of the workers' machines.
    (plan.steps, plan.checksums) = try steps.plan(isSingle: plan.isSingle) { text throws(UsageError) in
      try Folder.absolutePath(text)
    }
    let isShared = try folder.location(directory: "/")?.isShared ?? false
    let directory =
      try isShared ? Folder.absolutePath(folder.directory) : Folder.prepare(folder.directory, option: "--directory")
    var settings = PipelineSettings(directory: directory, ledger: try folder.usableLocation(directory: directory))
    settings.hasSource = false
    settings.isForAnyFolder = isShared
    // The ranks are those of the commands that run the downloads, and nothing is leased here.
    let options = DownloaderOptions(scope: .ids([]))
    let pipeline = try Pipeline(settings)
    // A server takes two batches in the time of one: while one waits for its indexes, another one is prepared.
    let count = isShared && list != nil ? 2 : 1
    let adding = try await Self.withDownloaders(count, pipeline, options) { downloaders in
      var adding = Adding(downloaders: downloaders, plan: plan, urls: urls.style)
      try await withThrowingTaskGroup(of: Adding.Batch.self) { group in
        try await adding.add(plan.urls, &group)
        while let urls = try await adding.next(of: list, &group) { try await adding.add(urls, &group) }
        try await adding.finish(&group)
      }
      return adding
    }
    try OutputFile.standardOutput.write(adding.summary(isJSON: json))
    if adding.refused > 0 { throw ExitCode(1) }
  }

  private static func withDownloaders<Result>(
    _ count: Int, _ pipeline: Pipeline, _ options: DownloaderOptions, _ body: ([Downloader]) async throws -> Result
  ) async throws -> Result {
    var downloaders: [Downloader] = []
    let result: Swift.Result<Result, any Error>
    do {
      for _ in 0..<count { downloaders.append(try await Downloader.starting(pipeline, options: options)) }
      result = .success(try await body(downloaders))
    } catch { result = .failure(error) }
    for downloader in downloaders { await downloader.shutdown() }
    return try result.get()
  }

  /// Adds URLs in large batches: as many as there are downloaders go to the ledger while the next one is read.
  private struct Adding {
    /// What has become of a batch.
    struct Batch: Sendable {
      let downloader: Downloader
      let ids: [DownloadID]
      /// The number of downloads that it has added, and of those that were known.
      let added: Int, known: Int
    }

    typealias Batches = ThrowingTaskGroup<Batch, any Error>
    private static let batch = 5_000

    let plan: GetPlan
    let urls: URLStyle
    private(set) var added = 0
    private(set) var known = 0
    private(set) var refused = 0
    private var requests: [DownloadRequest] = []
    /// The downloads of the batches that go to the ledger.
    private var underway: Set<DownloadID> = []
    /// Those that have no batch.
    private var idle: [Downloader]

    init(downloaders: [Downloader], plan: GetPlan, urls: URLStyle) {
      idle = downloaders
      self.plan = plan
      self.urls = urls
    }

    mutating func add(_ lines: [String], _ group: inout Batches) async throws {
      for text in lines {
        do throws(DownloadError) {
          requests.append(try plan.request(for: text))
        } catch {
          refused += 1
          OutputFile.warn("\(urls.text(URLLine(text).url).prefix(200)): \(error.message)".harmless)
        }
        if requests.count >= Self.batch { try await flush(&group) }
      }
    }

    /// The next URLs. What was read before them is added also if they cannot be read.
    mutating func next(of list: URLList?, _ group: inout Batches) async throws -> [String]? {
      // The next line of a pipe may come in an hour: those before are added, and what the ledger refuses is told.
      if plan.inputFile == "-" { try await finish(&group) }
      do { return try await list?.next() } catch {
        try await finish(&group)
        throw error
      }
    }

    /// Sends the batch to the ledger, once a downloader has none.
    private mutating func flush(_ group: inout Batches) async throws {
      while idle.isEmpty, try await waitForOne(&group) {}
      // Of two lines with one download the later one counts.
      if requests.contains(where: { underway.contains($0.id) }) { try await waitForAll(&group) }
      let ids = requests.map(\.id)
      underway.formUnion(ids)
      guard let downloader = idle.popLast() else { return }
      group.addTask { [requests] in
        let downloads = try await downloader.add(contentsOf: requests)
        let new = downloads.count { $0.isNew }
        return Batch(downloader: downloader, ids: ids, added: new, known: downloads.count - new)
      }
      requests = []
    }

    /// - Returns: Whether there was a batch to wait for.
    private mutating func waitForOne(_ group: inout Batches) async throws -> Bool {
      guard let batch = try await group.next() else { return false }
      (added, known) = (added + batch.added, known + batch.known)
      underway.subtract(batch.ids)
      idle.append(batch.downloader)
      return true
    }

    private mutating func waitForAll(_ group: inout Batches) async throws {
      while try await waitForOne(&group) {}
    }

    mutating func finish(_ group: inout Batches) async throws {
      if !requests.isEmpty { try await flush(&group) }
      try await waitForAll(&group)
    }

    func summary(isJSON: Bool) -> String {
      if isJSON {
        let object: JSONObject = ["added": added, "known": known, "refused": refused]
        return object.json + "\n"
      }
      let parts = ["\(added) added", known > 0 ? "\(known) known" : "", refused > 0 ? "\(refused) refused" : ""]
      return parts.filter { !$0.isEmpty }.joined(separator: ", ") + "\n"
    }
  }
}
