import ArgumentParser
import Downpipe
import Foundation

/// `downpipe add`: adds downloads to a ledger, for other commands to run.
struct AddCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Add downloads to a ledger, and start nothing.",
    discussion: """
      “downpipe work” and “downpipe resume” run them. In a database, they belong to no folder: each goes to the folder of \
      the worker that takes it. Files that the ledger knows as finished stay as they are.
      """
  )

  @OptionGroup(title: "File options") var input: GetOptions
  @OptionGroup(title: "Options for finished files") var steps: StepOptions
  @OptionGroup(title: "Folder options") var folder: FolderOptions
  @Flag(help: "Apply the rules for links from strangers, as “get --untrusted”.")
  var untrusted = false
  @Flag(help: "Print one JSON object at the end.")
  var json = false

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
    let downloader = try await Downloader.starting(Pipeline(settings), options: options)
    var adding = Adding(downloader: downloader, plan: plan)
    do {
      try await withThrowingTaskGroup(of: Adding.Counts.self) { group in
        try await adding.add(plan.urls, &group)
        while let urls = try await adding.next(of: list, &group) { try await adding.add(urls, &group) }
        try await adding.finish(&group)
      }
    } catch {
      await downloader.shutdown()
      throw error
    }
    await downloader.shutdown()
    try OutputFile.standardOutput.write(adding.summary(isJSON: json))
    if adding.refused > 0 { throw ExitCode(1) }
  }

  /// Adds URLs in large batches: one goes to the ledger while the next one is read.
  private struct Adding {
    /// The downloads that a batch has added, and those that were known.
    typealias Counts = (added: Int, known: Int)
    private static let batch = 5_000

    let downloader: Downloader
    let plan: GetPlan
    private var counts: Counts = (0, 0)
    private(set) var refused = 0
    private var requests: [DownloadRequest] = []

    init(downloader: Downloader, plan: GetPlan) {
      self.downloader = downloader
      self.plan = plan
    }

    var added: Int { counts.added }
    var known: Int { counts.known }

    mutating func add(_ urls: [String], _ group: inout ThrowingTaskGroup<Counts, any Error>) async throws {
      for text in urls {
        do throws(DownloadError) {
          requests.append(try plan.request(for: text))
        } catch {
          refused += 1
          OutputFile.warn("\(URLLine(text).url.redactedURL.prefix(200)): \(error.message)".harmless)
        }
        if requests.count >= Self.batch { try await flush(&group) }
      }
    }

    /// The next URLs. What was read before them is added also if they cannot be read.
    mutating func next(
      of list: URLList?, _ group: inout ThrowingTaskGroup<Counts, any Error>
    ) async throws -> [String]? {
      // The next line of a pipe may come in an hour: what the ledger refuses is told before.
      if plan.inputFile == "-" { try await waitForLast(&group) }
      do { return try await list?.next() } catch {
        try await waitForLast(&group)
        throw error
      }
    }

    /// Sends the batch to the ledger, after the one before.
    private mutating func flush(_ group: inout ThrowingTaskGroup<Counts, any Error>) async throws {
      try await waitForLast(&group)
      group.addTask { [downloader, requests] in
        let downloads = try await downloader.add(contentsOf: requests)
        let new = downloads.count { $0.isNew }
        return (new, downloads.count - new)
      }
      requests = []
    }

    private mutating func waitForLast(_ group: inout ThrowingTaskGroup<Counts, any Error>) async throws {
      guard let last = try await group.next() else { return }
      counts = (counts.added + last.added, counts.known + last.known)
    }

    mutating func finish(_ group: inout ThrowingTaskGroup<Counts, any Error>) async throws {
      if !requests.isEmpty { try await flush(&group) }
      try await waitForLast(&group)
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
