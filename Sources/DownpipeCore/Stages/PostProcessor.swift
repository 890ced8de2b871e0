public import Foundation

/// A step after the transfer that turns one artifact into the next.
///
/// A step never mutates its own configuration. It writes its output into ``ProcessingContext/workspace`` under another
/// name than its input's, and returns it. The output's ``Artifact/name`` must be a single path component. The engine
/// looks for the output, records it and only then removes the input: a step that returns a path at which there is
/// nothing, or one outside of the workspace and its ``outputFolders(in:)``, fails with `.processing`, and the input is
/// kept. After a crash, a step that was not recorded runs again from its input.
///
/// ```swift
/// struct Reverse: PostProcessor {
///   func process(_ file: File, in context: ProcessingContext) async throws -> File {
///     guard let input = file.path, let workspace = context.workspace else {
///       throw DownloadError(.processing, "Reverse needs files")
///     }
///     let output = workspace + "/reversed"
///     try Data(Data(contentsOf: URL(filePath: input)).reversed()).write(to: URL(filePath: output))
///     return File(path: output, name: file.name)
///   }
/// }
/// ```
public protocol PostProcessor<Input, Output>: Stage {
  /// The form of artifact that the step takes.
  associatedtype Input: ArtifactForm
  /// The form of artifact that the step returns.
  associatedtype Output: ArtifactForm

  /// Turns the input into the output.
  ///
  /// The function may block: the engine runs it on threads for blocking work. Cancelling the task ends it, and its
  /// output in the workspace is removed.
  /// - Throws: ``DownloadError``, with `.damaged` for an input that is not correct data of its format, which is then
  ///   downloaded again; any other error is reported with `.processing`.
  func process(_ input: Input, in context: ProcessingContext) async throws -> Output

  /// Whether the step has work to do for this download.
  ///
  /// A step that keeps the form of its artifact is skipped at no cost when it has none. The function must be cheap and
  /// pure. The context has no workspace yet. The default implementation returns `true`.
  func isNeeded(in context: ProcessingContext) -> Bool

  /// Returns a follower that takes the bytes of the download while they arrive; `nil` if the step reads its input.
  ///
  /// Only steps that take the downloaded bytes themselves are asked, once the reply has been received: those before the
  /// first step that has no follower, or whose follower writes. The context has the announced size in
  /// ``ProcessingContext/bytesReceived``, and a workspace only if ``followerWrites`` is `true`. A note of the follower is
  /// recorded like one of the step, which finds it in ``ProcessingContext/priorNote``, as does the next follower.
  /// The function must be cheap. The step gets the follower in ``ProcessingContext/follower``, but must not rely on it:
  /// after a restart of the process, and if the bytes changed while they arrived, it gets none. With and without a
  /// follower, the step must return the same, and fail with the same error. The default implementation returns `nil`.
  func follower(in context: ProcessingContext) -> (any TransferFollower)?

  /// Whether the step's follower writes to the workspace; `false` by default.
  ///
  /// The steps after it are not asked for followers: they take what this step writes. When the disk is full, such
  /// followers are discarded first. They are not asked for with a storage without paths.
  var followerWrites: Bool { get }

  /// Whether the step returns the bytes that it takes: it checks, moves or marks them; `false` by default.
  ///
  /// The digests of a download are those of the bytes that were downloaded. A published file can be verified and repaired
  /// with them only if all steps that have worked on it keep its content; see ``Downloader/verify(_:repairing:)``.
  var keepsContent: Bool { get }

  /// The absolute paths of the folders, beside the workspace, in which the step's output may be, such as the folder that
  /// it moves files into. Folders below them count, too. The default implementation returns none.
  ///
  /// A step that takes an artifact which has left the storage may also return one in the same folder.
  func outputFolders(in context: ProcessingContext) -> [String]
}

extension PostProcessor {
  /// The default: `true`.
  public func isNeeded(in context: ProcessingContext) -> Bool { true }

  /// The default: `nil`, the step reads its input.
  public func follower(in context: ProcessingContext) -> (any TransferFollower)? { nil }

  /// The default: `false`.
  public var followerWrites: Bool { false }

  /// The default: `false`.
  public var keepsContent: Bool { false }

  /// The default: none, the output is in the workspace.
  public func outputFolders(in context: ProcessingContext) -> [String] { [] }

  /// Adds the step at the end of the pipeline's steps.
  public func contribute(to parts: inout PipelineParts) {
    parts.steps.append(
      PipelineStep(
        name: name, summary: summary, input: Input.kind, output: Output.kind,
        verifiesDigests: self is any DigestVerifying, verifies: digestVerifier(of: self),
        isNeeded: { Input.kind != Output.kind || isNeeded(in: $0) }, follower: follower(in:),
        followerWrites: followerWrites, keepsContent: keepsContent, outputFolders: outputFolders(in:),
        process: { artifact, context in try await process(Input(artifact), in: context).artifact }))
  }
}

/// A step that takes an artifact of any form and returns the same form: moving, checking, notifying.
public protocol UniversalPostProcessor: Stage {
  /// Processes the artifact, with the contract of ``PostProcessor/process(_:in:)``.
  func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact

  /// Whether the step has work to do for this download; see ``PostProcessor/isNeeded(in:)``.
  func isNeeded(in context: ProcessingContext) -> Bool

  /// Returns a follower of the transfer; see ``PostProcessor/follower(in:)``.
  func follower(in context: ProcessingContext) -> (any TransferFollower)?

  /// Whether the follower writes to the workspace; see ``PostProcessor/followerWrites``.
  var followerWrites: Bool { get }

  /// Whether the step returns the bytes that it takes; see ``PostProcessor/keepsContent``.
  var keepsContent: Bool { get }

  /// The folders in which the output may be; see ``PostProcessor/outputFolders(in:)``.
  func outputFolders(in context: ProcessingContext) -> [String]
}

extension UniversalPostProcessor {
  /// The default: `true`.
  public func isNeeded(in context: ProcessingContext) -> Bool { true }

  /// The default: `nil`, the step reads its input.
  public func follower(in context: ProcessingContext) -> (any TransferFollower)? { nil }

  /// The default: `false`.
  public var followerWrites: Bool { false }

  /// The default: `false`.
  public var keepsContent: Bool { false }

  /// The default: none, the output is in the workspace.
  public func outputFolders(in context: ProcessingContext) -> [String] { [] }

  /// Adds the step at the end of the pipeline's steps.
  public func contribute(to parts: inout PipelineParts) {
    parts.steps.append(
      PipelineStep(
        name: name, summary: summary, input: nil, output: nil, verifiesDigests: self is any DigestVerifying,
        verifies: digestVerifier(of: self), isNeeded: isNeeded(in:), follower: follower(in:),
        followerWrites: followerWrites, keepsContent: keepsContent, outputFolders: outputFolders(in:),
        process: { artifact, context in try await process(artifact, in: context) }))
  }
}

/// A step that compares the whole file with the digests in its context, and fails when they differ.
///
/// Only a pipeline with such a step may rely on a digest to validate a resumed file; see ``ResumeValidation/digest``.
/// A request that expects a digest is refused unless a selected step verifies digests of its algorithm.
/// The step reports each digest that it has found right with ``ProcessingContext/confirm(_:from:)``; without a report, the
/// download counts as unverified.
public protocol DigestVerifying: Stage {
  /// Whether the step can verify digests of an algorithm; by default, whether the algorithm is one that
  /// ``DigestAlgorithm`` names.
  func verifies(_ algorithm: DigestAlgorithm) -> Bool
}

extension DigestVerifying {
  /// The default: whether the length of the algorithm's digests is known.
  public func verifies(_ algorithm: DigestAlgorithm) -> Bool { algorithm.byteCount != nil }
}

private func digestVerifier(of step: any Stage) -> (@Sendable (DigestAlgorithm) -> Bool)? {
  guard let step = step as? any DigestVerifying else { return nil }
  return { @Sendable algorithm in step.verifies(algorithm) }
}

/// A step with its types erased, as the pipeline keeps it.
public struct PipelineStep: Sendable {
  /// The name of the step, under which the ledger records it.
  public let name: String
  /// The settings of the step, for the printed pipeline.
  public let summary: String
  /// The kind of artifact that the step takes; any kind when `nil`.
  public let input: Artifact.Kind?
  /// The kind of artifact that the step returns; the kind that it took when `nil`.
  public let output: Artifact.Kind?
  /// Whether the step is ``DigestVerifying`` and runs for every download that selects it.
  public let verifiesDigests: Bool
  /// Whether the step verifies digests of an algorithm when it runs; `nil` for a step that verifies none.
  let verifier: (@Sendable (DigestAlgorithm) -> Bool)?
  /// Whether the step has work to do for a download.
  public let isNeeded: @Sendable (ProcessingContext) -> Bool
  /// Returns a follower of the transfer; see ``PostProcessor/follower(in:)``.
  public let follower: @Sendable (ProcessingContext) -> (any TransferFollower)?
  /// Whether the follower writes to the workspace; see ``PostProcessor/followerWrites``.
  public let followerWrites: Bool
  /// Whether the step returns the bytes that it takes; see ``PostProcessor/keepsContent``.
  public let keepsContent: Bool
  /// The folders in which the output may be; see ``PostProcessor/outputFolders(in:)``.
  public let outputFolders: @Sendable (ProcessingContext) -> [String]
  /// Turns one artifact into the next.
  public let process: @Sendable (Artifact, ProcessingContext) async throws -> Artifact

  /// Whether the step verifies digests when it runs.
  var mayVerifyDigests: Bool { verifier != nil }

  /// Whether the step verifies digests of an algorithm when it runs.
  public func verifies(_ algorithm: DigestAlgorithm) -> Bool { verifier?(algorithm) ?? false }

  /// Creates a type-erased step.
  ///
  /// - Parameters:
  ///   - name: The name of the step.
  ///   - summary: The settings of the step.
  ///   - input: The kind of artifact that the step takes; any kind when `nil`.
  ///   - output: The kind of artifact that the step returns; the kind that it took when `nil`.
  ///   - verifiesDigests: Whether the step verifies digests for every download that selects it.
  ///   - verifies: Whether the step verifies digests of an algorithm when it runs; by default, those that
  ///     ``DigestAlgorithm`` names if `verifiesDigests` is `true`.
  ///   - isNeeded: Whether the step has work to do for a download.
  ///   - follower: Returns a follower of the transfer.
  ///   - followerWrites: Whether the follower writes to the workspace.
  ///   - keepsContent: Whether the step returns the bytes that it takes.
  ///   - outputFolders: Returns the folders, beside the workspace, in which the output may be.
  ///   - process: Turns one artifact into the next.
  public init(
    name: String, summary: String = "", input: Artifact.Kind?, output: Artifact.Kind?,
    verifiesDigests: Bool = false, verifies: (@Sendable (DigestAlgorithm) -> Bool)? = nil,
    isNeeded: @escaping @Sendable (ProcessingContext) -> Bool = { _ in true },
    follower: @escaping @Sendable (ProcessingContext) -> (any TransferFollower)? = { _ in nil },
    followerWrites: Bool = false, keepsContent: Bool = false,
    outputFolders: @escaping @Sendable (ProcessingContext) -> [String] = { _ in [] },
    process: @escaping @Sendable (Artifact, ProcessingContext) async throws -> Artifact
  ) {
    self.name = name
    self.summary = summary
    self.input = input
    self.output = output
    self.verifiesDigests = verifiesDigests
    if let verifies {
      verifier = verifies
    } else {
      verifier = verifiesDigests ? { @Sendable algorithm in algorithm.byteCount != nil } : nil
    }
    self.isNeeded = isNeeded
    self.follower = follower
    self.followerWrites = followerWrites
    self.keepsContent = keepsContent
    self.outputFolders = outputFolders
    self.process = process
  }
}

/// The values that a step works with.
public struct ProcessingContext: Sendable {
  /// The request of the download.
  public let request: DownloadRequest
  /// The folder for the step's output, on the file system of the destination; `nil` with storages without paths.
  public let workspace: String?
  /// The digests that the whole file must have: those of the request, then those sent by the server.
  public let digests: [FileDigest]
  /// The note that the same step recorded before the process ended; `nil` on a first run.
  public let priorNote: String?
  /// What the step's output must survive once the step has returned.
  public let durability: Durability
  /// Whether an earlier run was interrupted with its process, and may have published the artifact without recording it.
  ///
  /// A storage that finds the same bytes under the destination's name then treats them as its own.
  public let wasInterrupted: Bool
  /// The follower that the step returned in ``PostProcessor/follower(in:)``, if it has taken exactly the bytes of the
  /// step's input.
  public let follower: (any TransferFollower)?
  /// The published artifact of an earlier fetch of the same download, which the new one replaces; `nil` for a first
  /// fetch.
  ///
  /// A storage or step that finds this artifact, unchanged, under the name that it wants to give replaces it, under
  /// every policy for conflicts. If the new artifact gets another place, the engine removes the earlier one.
  public let replaces: Artifact?

  /// The number of bytes that were downloaded for the file, before any step; `nil` when unknown. While they arrive, for a
  /// follower, it is the number that the server has announced.
  ///
  /// A step that limits its output by the size of its input uses this number, so that several steps in a row share one
  /// limit.
  public let bytesReceived: Int64?

  /// When the downloaded file was last modified, as its server states (`Last-Modified`, RFC 9110 §8.8.2); `nil` when it
  /// states nothing, and before the reply.
  ///
  /// It is the time of the downloaded bytes, before any step. A server can state any time, also one in the future.
  public let lastModified: Date?

  /// The name of the downloaded file before any step; `nil` before the reply, and in contexts that are not from an engine.
  ///
  /// It is a single safe path component. Steps may give the file another name.
  public let downloadedName: String?

  /// The media type of the downloaded file, as its server states; `nil` when it states none, and before the reply.
  public let mediaType: String?

  /// The digests that the steps before this one have verified.
  public let verified: [VerifiedDigest]

  /// Reads bytes that the follower has taken once more; `nil` in contexts that are not for a follower.
  ///
  /// A follower that needs them later, such as one that uploads them, need not keep them in memory. It may be called by any
  /// thread, also while bytes arrive, and blocks while the disk works. After ``TransferFollower/discard()`` there may be
  /// no bytes any more.
  public let readBack: ReadBack?

  /// Reads bytes from an offset into a buffer, and returns their number, which is less than the buffer's only at the end.
  public typealias ReadBack = @Sendable (_ offset: Int64, _ buffer: inout MutableRawSpan) throws -> Int

  private let record: @Sendable (String) async throws -> Void
  private let fetcher: Fetcher
  private let reporter: @Sendable (StepProgress) -> Void
  private let confirmer: @Sendable (VerifiedDigest) -> Void
  let adder: Adder
  let waiter: Waiter

  /// Fetches a small file; see ``fetch(_:maximumBytes:isNamedByUser:)``.
  public typealias Fetcher = @Sendable (_ url: URL, _ maximumBytes: Int, _ isNamedByUser: Bool) async throws -> [UInt8]

  /// Creates a context.
  ///
  /// A context that is not from an engine, such as one of a test, fetches with `fetch`, adds downloads with `add` and
  /// waits for them with `wait`; by default, these fail with `.processing`.
  public init(
    request: DownloadRequest, workspace: String?, digests: [FileDigest] = [], priorNote: String? = nil,
    durability: Durability = .process, wasInterrupted: Bool = false, follower: (any TransferFollower)? = nil,
    bytesReceived: Int64? = nil, replaces: Artifact? = nil, lastModified: Date? = nil, downloadedName: String? = nil,
    mediaType: String? = nil, verified: [VerifiedDigest] = [],
    note: @escaping @Sendable (String) async throws -> Void = { _ in },
    report: @escaping @Sendable (StepProgress) -> Void = { _ in },
    confirm: @escaping @Sendable (VerifiedDigest) -> Void = { _ in },
    fetch: Fetcher? = nil, add: Adder? = nil, wait: Waiter? = nil, readBack: ReadBack? = nil
  ) {
    self.request = request
    self.workspace = workspace
    self.digests = digests
    self.priorNote = priorNote
    self.durability = durability
    self.wasInterrupted = wasInterrupted
    self.follower = follower
    self.bytesReceived = bytesReceived
    self.replaces = replaces
    self.lastModified = lastModified
    self.downloadedName = downloadedName
    self.mediaType = mediaType
    self.verified = verified
    self.readBack = readBack
    self.record = note
    self.reporter = report
    self.confirmer = confirm
    self.fetcher =
      fetch ?? { url, _, _ in
        throw DownloadError(.processing, "\(url.redacted) cannot be fetched: this context has no downloader")
      }
    let noDownloader = DownloadError(.processing, "this context has no downloader that downloads could be added to")
    adder = add ?? { _, _ in throw noDownloader }
    waiter = wait ?? { _, _ in throw noDownloader }
  }

  /// Records a short text in the ledger, before a step does something that cannot be repeated.
  ///
  /// After a crash the step finds the text in ``priorNote``. The function returns once the text is durable.
  public func note(_ text: String) async throws { try await record(text) }

  /// Says how far the step has come, for ``DownloadStatus/stepProgress``.
  ///
  /// It costs a lock and no more, and can be called for each block: watchers hear of it a few times a second.
  public func report(_ progress: StepProgress) { reporter(progress) }

  /// Reports that a digest of the whole file was compared with the step's input, and is right.
  ///
  /// The ledger keeps the reports of a step with its result: those of a step that fails count for nothing. They are in
  /// ``DownloadStatus/verified``, in an event ``DownloadEvent/Kind/verified(_:)``, and in ``verified`` of the later steps, and
  /// ``Downloader/verify(_:repairing:)`` uses them.
  /// - Parameters:
  ///   - digest: The digest.
  ///   - origin: Where the digest came from.
  public func confirm(_ digest: FileDigest, from origin: VerifiedDigest.Origin = .checksumFile) {
    confirmer(VerifiedDigest(digest, from: origin))
  }

  /// Reports that each piece of the step's input was compared with its digest, and is right; see ``confirm(_:from:)``.
  public func confirm(_ pieces: PieceDigests) { confirmer(VerifiedDigest(pieces)) }

  /// Fetches a small file that the step needs, such as a checksum or a signature, into memory.
  ///
  /// ```swift
  /// let sums = try await context.fetch(.beside("SHA256SUMS"), maximumBytes: 1 << 20)
  /// ```
  /// The file comes through the sources and interceptors of the pipeline, at the pace of the download, and without a
  /// content coding. Call it from the task of the step: the request ends with that task, and therefore when the download
  /// is paused or removed. It ends after ten minutes at the latest.
  ///
  /// **Shared copies.** Downloads whose requests are the same for the source (URL, header fields, metadata of the download,
  /// origin, `maximumBytes`) share one request, and its file for a minute, or for as long as ``SourceReply/freshFor`` says if
  /// that is shorter. After that the server is asked whether the file has changed. A downloader keeps at most 8 MiB of such
  /// files, each of at most 4 MiB. A step that finds its copy wrong calls the function once more: it returns no copy that was
  /// requested before the step's previous call for the URL.
  ///
  /// **Credentials.** A URL that the user has named gets the header fields that it would get as a mirror, and what the
  /// source's settings have for it. A URL of the request's own origin gets the same, as after a redirect, unless the
  /// request is ``DownloadRequest/isNamedByServer``. Any other URL gets nothing of the user; see
  /// ``SourceRequest/isNamedByServer``.
  /// - Parameters:
  ///   - url: The URL of the file.
  ///   - maximumBytes: The most bytes of the file.
  ///   - isNamedByUser: Whether the user has chosen the URL, in the request or in the step's settings, and no server.
  /// - Throws: ``DownloadError`` with the URL: `.httpStatus` with the status, `.tooLarge`, `.timedOut`, `.network` and the
  ///   other failures of sources; `CancellationError` when the task is cancelled or the run has ended.
  public func fetch(_ url: URL, maximumBytes: Int, isNamedByUser: Bool = false) async throws -> [UInt8] {
    try await fetcher(url, maximumBytes, isNamedByUser)
  }
}
