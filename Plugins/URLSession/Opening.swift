package import DownpipeCore
import Foundation
import Synchronization

/// Opens one request: sends it, follows redirects, makes the reply.
struct Opening {
  let session: TransferSession
  /// Whether the session serves this reply only and ends with it.
  let ownsSession: Bool

  private var configuration: URLSessionSource.Configuration { session.configuration }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    try Task.checkCancellation()
    let deadline = configuration.totalTimeLimit.map { ContinuousClock.now + $0 }
    var redirects = try Redirects(
      request, fields: try HTTPRequestFields.fields(for: request),
      rules: .init(
        maximum: configuration.maximumRedirects, allowsInsecure: configuration.allowsInsecureRedirects))
    while true {
      try request.lease.check()
      let transfer = TaskTransfer(configuration, deadline: deadline, pace: request.pace, session: session)
      session.begin(transfer, RequestURL.request(redirects))
      let answer = try await transfer.answer()
      do {
        if try redirects.follow(status: answer.status, headers: answer.headers.withOctetsOfLocation) {
          transfer.discard()
          continue
        }
        var reply = try reply(answer, from: redirects.url, transfer)
        redirects.record(in: &reply)
        return reply
      } catch {
        transfer.discard()
        throw error
      }
    }
  }

  private func reply(_ answer: TaskTransfer.Answer, from url: URL, _ transfer: TaskTransfer) throws(DownloadError)
    -> SourceReply
  {
    let lease = ReplyLease(transfer: transfer, session: ownsSession ? session : nil)
    var reply = try SourceReply(
      httpStatus: answer.status, headers: answer.headers, url: url,
      body: Body(
        discard: { lease.transfer.discard() },
        push: { sink in
          defer { withExtendedLifetime(lease) {} }
          try await lease.transfer.push(to: sink)
        }))
    reply.noteUndoneCoding()
    return reply
  }
}

extension SourceReply {
  /// Marks a reply whose content coding Foundation has decoded: length, digests and ranges of the response do not apply
  /// to the decoded bytes.
  /// - Returns: Whether the response has a content coding.
  @discardableResult package mutating func noteUndoneCoding() -> Bool {
    guard let coding = contentCoding else { return false }
    contentCoding = "decoded-\(coding)"
    length = .unknown
    digests = []
    return true
  }
}

/// Ends the transfer when the last reference to the reply is released, even if it was neither read nor discarded.
private final class ReplyLease: Sendable {
  let transfer: TaskTransfer
  private let session: TransferSession?

  init(transfer: TaskTransfer, session: TransferSession?) {
    self.transfer = transfer
    self.session = session
  }

  deinit {
    transfer.discard()
    session?.finish()
  }
}
