public import Foundation

/// A step that adds downloads that follow from an artifact, such as the files of a manifest, a playlist or a feed.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Downloads")
///   FollowUp { list in
///     guard list.name.hasSuffix(".urls"), let path = list.path else { return [] }
///     let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
///     return try lines.map { try DownloadRequest(String($0)) }
///   }
/// }
/// ```
/// The artifact is passed on unchanged. The step may stand anywhere in the chain, and it sees the artifacts of the
/// downloads that it has added, too: return none for files that are no manifest.
///
/// **Hostile manifests.** What a server writes decides what is fetched. So a child may only have URLs that are accepted,
/// by default those of `https` and `http`, and its destination must be below the root of the storage. Nothing of the
/// parent's request is inherited, and children get no credentials unless ``sendsCredentials`` says so. To keep children
/// from addresses of the own network, use a source that refuses them. ``FollowUpLimits`` bounds generations and number
/// together: a manifest that names itself ends with `.followUpLimit`.
///
/// **Ids.** A child's id is made of the id of the parent, and of the child's URL and destination; the id of the returned
/// request is replaced, also in ``DownloadRequest/after`` of the others. So an artifact that is processed again, after a
/// crash, by another process or after a restart, gives the same downloads: they are updated by the rules of
/// ``Downloader/add(_:ifKnown:paused:)``, and none is added twice. A URL that occurs twice with one destination is one download.
/// All descendants of a download have the tag ``tag(of:)``, for queries and commands:
///
/// ```swift
/// try await downloader.cancelAll(.tag(FollowUp.tag(of: "feed")))
/// ```
/// Cancelling or removing the parent does not affect children that were added.
///
/// **Waiting.** With ``waitsForChildren``, the parent gives its slot away and waits for its children as for other
/// dependencies (``DownloadRequest/after``), of which there may be 1,000. Its next steps run, and it finishes, after they
/// have finished. A child that fails or is cancelled holds it back until it is resumed or the dependency is taken away.
///
/// **Contract.** All children are added in one transaction of the ledger, or none. The step throws `DownloadError` with
/// `.followUpLimit`; `.unsupportedURL`, `.unsafePath` or `.invalidRequest` for a child that cannot be added; `.ledger`;
/// and what the closure throws, with `.processing` unless it is a `DownloadError`.
public struct FollowUp: UniversalPostProcessor {
  /// The bounds on what follows.
  public let limits: FollowUpLimits
  /// Whether the parent finishes after its children.
  public let waitsForChildren: Bool
  /// Whether children may get credentials: header fields that the closure sets, and what the settings of the source have
  /// for their origins. It is for manifests of a server that may choose where they go. If it is `false`, children are
  /// ``DownloadRequest/isNamedByServer``; otherwise the closure decides.
  public let sendsCredentials: Bool
  private let isAccepted: @Sendable (URL) -> Bool
  private let make: @Sendable (Artifact, ProcessingContext) async throws -> [DownloadRequest]

  /// Creates a step that adds downloads.
  ///
  /// - Parameters:
  ///   - limits: The bounds on what follows.
  ///   - waitsForChildren: Whether the parent finishes after its children; `false` by default.
  ///   - sendsCredentials: Whether children may get credentials; `false` by default.
  ///   - isAccepted: Whether a URL can be used, also as a mirror; by default, whether it is `https` or `http`.
  ///   - requests: Returns the downloads that follow from the artifact, or none. Equal artifacts must give equal
  ///     downloads. It may block, and is called again if the process has ended before the ledger recorded the step.
  public init(
    limits: FollowUpLimits = FollowUpLimits(), waitsForChildren: Bool = false, sendsCredentials: Bool = false,
    accepting isAccepted: @escaping @Sendable (URL) -> Bool = { ["https", "http"].contains($0.scheme?.lowercased()) },
    _ requests: @escaping @Sendable (_ artifact: Artifact) async throws -> [DownloadRequest]
  ) {
    self.init(
      limits: limits, waitsForChildren: waitsForChildren, sendsCredentials: sendsCredentials, accepting: isAccepted
    ) { artifact, _ in try await requests(artifact) }
  }

  /// Creates a step that adds downloads, which depend on the request of the parent, too.
  ///
  /// - Parameters:
  ///   - limits: The bounds on what follows.
  ///   - waitsForChildren: Whether the parent finishes after its children; `false` by default.
  ///   - sendsCredentials: Whether children may get credentials; `false` by default.
  ///   - isAccepted: Whether a URL can be used, also as a mirror; by default, whether it is `https` or `http`.
  ///   - requests: Returns the downloads that follow from the artifact; see the other initializer.
  public init(
    limits: FollowUpLimits = FollowUpLimits(), waitsForChildren: Bool = false, sendsCredentials: Bool = false,
    accepting isAccepted: @escaping @Sendable (URL) -> Bool = { ["https", "http"].contains($0.scheme?.lowercased()) },
    _ requests:
      @escaping @Sendable (_ artifact: Artifact, _ context: ProcessingContext) async throws -> [DownloadRequest]
  ) {
    self.limits = limits
    self.waitsForChildren = waitsForChildren
    self.sendsCredentials = sendsCredentials
    self.isAccepted = isAccepted
    make = requests
  }

  /// The limits, and whether the parent waits.
  public var summary: String { limits.description + (waitsForChildren ? ", waits for them" : "") }

  /// The step reads a file and does not change it.
  public var keepsContent: Bool { true }

  /// The tag of all descendants of a download that the app has added.
  public static func tag(of root: DownloadID) -> String { "follow-up:\(root.rawValue)" }

  /// What the ledger notes once the children are in it.
  private static let added = "added"
  /// What it notes once the parent waits for them.
  private static let waited = "waited"

  /// Adds the downloads that follow from the artifact, and returns it unchanged.
  public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    try Task.checkCancellation()
    if context.priorNote == Self.waited { return artifact }
    let isAdded = context.priorNote == Self.added
    if isAdded, !waitsForChildren { return artifact }
    let children = try prepare(try await make(artifact, context), parent: context.request.id)
    guard !children.isEmpty else { return artifact }
    if waitsForChildren, children.count > DownloadRequest.mostDependencies {
      throw DownloadError(
        .followUpLimit,
        "“\(artifact.name)” names \(children.count) downloads, but a download can wait for at most "
          + "\(DownloadRequest.mostDependencies): use FollowUp without waitsForChildren")
    }
    if !isAdded {
      try await context.add(children, within: limits)
      try await context.note(Self.added)
    }
    if waitsForChildren { try await context.wait(for: Set(children.map(\.id)), noting: Self.waited) }
    return artifact
  }

  private func prepare(_ requests: [DownloadRequest], parent: DownloadID) throws(DownloadError) -> [DownloadRequest] {
    var ids: [DownloadID: DownloadID] = [:]
    for request in requests { ids[request.id] = try Self.id(of: request, below: parent) }
    var known: Set<DownloadID> = []
    var children: [DownloadRequest] = []
    for request in requests {
      for url in [request.url] + request.mirrors where !isAccepted(url) {
        throw DownloadError(
          .unsupportedURL, "a download that follows from “\(parent)” has a URL that FollowUp does not accept"
        ).located(stage: nil, url: url, attempt: nil)
      }
      guard request.destination.isConfined else {
        throw DownloadError(
          .unsafePath,
          "a download that follows from “\(parent)” has a destination outside the folder: make names with SafeFileName"
        ).located(stage: nil, url: request.url, attempt: nil)
      }
      var child = request
      child.id = try Self.id(of: request, below: parent)
      guard known.insert(child.id).inserted else { continue }
      child.after = Set(child.after.map { ids[$0] ?? $0 })
      if !sendsCredentials { child.isNamedByServer = true }
      children.append(child)
    }
    return children
  }

  /// Whether an id may be that of a child, made by ``id(of:below:)``.
  static func isChild(_ id: DownloadID, of parent: DownloadID) -> Bool {
    let text = id.rawValue
    return text.hasPrefix("\(parent.rawValue)/") && text.utf8.count == parent.rawValue.utf8.count + 1 + digitCount
  }

  /// The number of digits to the base 36 of a hash with 128 bits.
  private static let digitCount = 25

  /// The id of a child. That of the parent is a part of it: no manifest can name the downloads of another one.
  static func id(of child: DownloadRequest, below parent: DownloadID) throws(DownloadError) -> DownloadID {
    let place = [child.url.absoluteString, child.destination.directory ?? "", child.destination.name ?? ""]
    let digits = String(UInt128(fnv1a: place.joined(separator: "\0").utf8), radix: 36)
    let id = "\(parent.rawValue)/\(String(repeating: "0", count: digitCount - digits.count))\(digits)"
    guard id.utf8.count <= 255 else {
      throw DownloadError(
        .invalidRequest,
        "the id “\(parent)” is too long for a download that others follow from: give it at most 150 bytes of UTF-8")
    }
    return DownloadID(id)
  }
}

extension DownloadRequest.Destination {
  /// Whether it is below the root of the storage, as far as the text says. The storage checks links and names.
  fileprivate var isConfined: Bool {
    func isName(_ text: Substring) -> Bool { !["", ".", ".."].contains(text) && !text.utf8.contains(0) }
    let folders = directory?.split(separator: "/", omittingEmptySubsequences: false) ?? []
    return folders.allSatisfy(isName) && name.map { isName($0[...]) && !$0.utf8.contains(UInt8(ascii: "/")) } ?? true
  }
}

/// The bounds on the downloads that follow from one download, through all generations.
public struct FollowUpLimits: Sendable, Hashable, CustomStringConvertible {
  /// The number of generations.
  public var depth: Int
  /// The number of descendants of the download that the app has added, as far as the ledger still has them. Processes
  /// that add at the same time may exceed it together.
  public var count: Int

  /// Creates limits.
  ///
  /// - Parameters:
  ///   - depth: The number of generations, 4 by default.
  ///   - count: The number of descendants, 10,000 by default.
  public init(depth: Int = 4, count: Int = 10_000) {
    self.depth = max(0, depth)
    self.count = max(0, count)
  }

  /// Both limits in words.
  public var description: String { "at most \(depth) generations and \(count) downloads" }
}

extension DownloadError.Code {
  /// A download has more descendants, or more generations of them, than ``FollowUpLimits`` allows.
  public static let followUpLimit = DownloadError.Code("followUpLimit")
}
