internal import Foundation

/// The steps of one download: those of the pipeline, and before them the removal of the content codings of its bytes.
///
/// The chain depends only on the record and the pipeline. So it is the same after a restart of the process, and a chain
/// that has changed is recognised by the names of its steps.
struct RunChain: Sendable {
  struct Link: Sendable {
    let step: PipelineStep
    /// Whether the step removes a content coding. Such a step belongs to the transfer: no ``StepSelection`` leaves it out.
    var isDecoder = false
    /// The digests that apply to the step's input.
    let digests: [FileDigest]
  }

  let links: [Link]
  /// The digests that apply to the result of the decoding, or to the bytes if there is none.
  let digests: [FileDigest]
  /// Why coded bytes are published although neither name nor type says that they are the file.
  var notice: DownloadError?

  var names: [String] { links.map(\.step.name) }
  /// The position after the last decoder; 0 if there is none.
  var endOfDecoding: Int { (links.lastIndex { $0.isDecoder } ?? -1) + 1 }

  /// Creates a chain.
  ///
  /// The request's digests are those of the file that the user gets. Those of the server are of the coded bytes
  /// (RFC 9530 §2), so they can only be checked before the decoding: if the request has none, also none of pieces, the
  /// steps that verify digests run first.
  init(
    _ steps: [PipelineStep], decoders: [PipelineStep], requested: [FileDigest], sent: [FileDigest],
    hasPieces: Bool = false
  ) {
    guard !decoders.isEmpty else {
      digests = requested + sent
      links = steps.map { [digests] in Link(step: $0, digests: digests) }
      return
    }
    digests = requested
    let verifiesFirst = requested.isEmpty && !hasPieces && !sent.isEmpty
    let first = verifiesFirst ? steps.filter { $0.verifiesDigests && $0.input != .directory } : []
    let rest = verifiesFirst ? steps.filter { !$0.verifiesDigests || $0.input == .directory } : steps
    links =
      first.map { Link(step: $0, digests: sent) } + decoders.map { Link(step: $0, isDecoder: true, digests: []) }
      + rest.map { Link(step: $0, digests: requested) }
  }
}

extension Run {
  /// The steps that the download needs, as far as the record tells.
  var chain: RunChain {
    let plain = read { record in
      record.checkpoint.contentCoding == nil
        ? RunChain(
          pipeline.steps, decoders: [], requested: record.request.expectedDigests, sent: record.checkpoint.digests)
        : nil
    }
    if let plain { return plain }
    let record = record
    let (decoders, notice) = decoders(for: record)
    var chain = RunChain(
      pipeline.steps, decoders: decoders, requested: record.request.expectedDigests, sent: record.checkpoint.digests,
      hasPieces: record.request.pieces != nil)
    chain.notice = notice
    return chain
  }

  /// Whether bytes of a representation will be decoded, so that their number says nothing about the size of the file.
  func decodes(_ reply: SourceReply, to request: SourceRequest) -> Bool {
    guard ContentCoding(reply.contentCoding) != nil else { return false }
    var record = record
    record.checkpoint = Checkpoint()
    Adoption(reply, to: request, keeping: 0, of: Checkpoint()).apply(to: &record)
    return !decoders(for: record).steps.isEmpty
  }

  /// The steps that remove the content codings, or the reason why the coded bytes are published.
  private func decoders(for record: DownloadRecord) -> (steps: [PipelineStep], notice: DownloadError?) {
    let checkpoint = record.checkpoint
    guard let coding = ContentCoding(checkpoint.contentCoding) else { return ([], nil) }
    if case .known(let total) = checkpoint.total {
      // An empty file has no coded form. If the coded bytes have the expected size, they are the expected file.
      if total == 0 || checkpoint.total == record.request.expectedSize { return ([], nil) }
    }
    let destination = record.request.destination
    let codings = coding.toRemove(
      names: [checkpoint.name, destination.finalName ?? destination.name], mediaType: checkpoint.mediaType)
    if codings.isEmpty { return ([], nil) }
    // The source that served the bytes decodes them, also after a restart of the process.
    let served = checkpoint.resource.flatMap { URL(string: $0) }.flatMap { stages.source(for: $0)?.stage }
    let source = served ?? stages.source(for: record.request.url)?.stage
    let isTooDeep = codings.count > ContentCoding.maximumCount
    let decoders = isTooDeep ? [] : codings.compactMap { source?.decoder(for: $0) }
    guard decoders.count == codings.count else {
      let reason =
        isTooDeep
        ? "has more than the \(ContentCoding.maximumCount) codings that are removed" : "is not decoded here"
      return (
        [],
        DownloadError(
          .keptContentCoding,
          "the server sent the file in the content coding “\(checkpoint.contentCoding?.prefix(64).escaped ?? "")”, which "
            + "\(reason): the file consists of the coded bytes", stage: source?.name)
      )
    }
    return (zip(codings, decoders).map { PipelineStep(removing: $0, with: $1) }, nil)
  }
}

extension PipelineStep {
  /// How the names of steps begin that remove content codings.
  static let decoderPrefix = "Decode "

  /// The step that removes a content coding. The file keeps its name and type, which describe the decoded bytes.
  init(removing coding: String, with decoder: any PostProcessor<File, File>) {
    let name = Self.decoderPrefix + coding
    self.init(name: name, summary: decoder.summary, input: .file, output: .file) { input, context in
      do {
        var output = try await decoder.process(File(input), in: context).artifact
        output.name = input.name
        output.mediaType = input.mediaType
        return output
      } catch var error as DownloadError where error.code == .processing || error.code == .damaged {
        error.message = "the content coding \(coding) cannot be removed: \(error.message)"
        throw error
      }
    }
  }
}
