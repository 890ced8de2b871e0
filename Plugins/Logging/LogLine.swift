import DownpipeCore
import DownpipeTimeline
import Logging

/// The message and the metadata of an event.
struct LogLine {
  let message: Logger.Message
  var metadata: Logger.Metadata

  init(_ event: DownloadEvent) {
    message = Self.message(of: event.kind)
    metadata = ["id": .string(event.id.safeText), "host": .string(event.request.host.safeText)]
    switch event.kind {
    case .state(let state): add(state, of: event.request)
    case .progress(let progress): add(progress)
    case .started(let attempt, let offset):
      metadata["attempt"] = .stringConvertible(attempt)
      metadata["bytes"] = .stringConvertible(offset)
    case .restarted(let error), .refused(let error), .attemptFailed(let error): add(error)
    case .redirected(let url), .linkRefreshed(let url): metadata["url"] = .string(url.safeText)
    case .stepProgress(let progress):
      metadata["bytes"] = .stringConvertible(progress.completed)
      metadata["total"] = progress.total.bytes.map { .stringConvertible($0) }
      metadata["items"] = progress.items.map { .stringConvertible($0) }
    case .verified(let digests):
      metadata["digests"] = .array(
        digests.map { .string("\($0.digest?.description ?? $0.algorithm.name) (\($0.origin))".safeText) })
    case .stepFinished(let name): metadata["step"] = .string(name.safeText)
    case .missed(let count): metadata["events"] = .stringConvertible(count)
    case .removed: break
    }
  }

  private static func message(of kind: DownloadEvent.Kind) -> Logger.Message {
    switch kind {
    case .state(.waiting): "download waits"
    case .state(.transferring): "download starts"
    case .state(.processing): "step starts"
    case .state(.paused): "download was paused"
    case .state(.finished): "download has finished"
    case .state(.failed): "download has failed"
    case .state(.cancelled): "download was cancelled"
    case .progress: "progress"
    case .started: "reply was accepted"
    case .restarted: "transfer starts again"
    case .refused: "reply was refused"
    case .attemptFailed: "attempt has failed"
    case .redirected: "request was redirected"
    case .linkRefreshed: "link was refreshed"
    case .stepProgress: "progress of a step"
    case .verified: "digest is right"
    case .stepFinished: "step has finished"
    case .missed: "events of this and other downloads were dropped"
    case .removed: "download was removed"
    }
  }

  private mutating func add(_ state: DownloadState, of request: DownloadRequest) {
    metadata["state"] = .string(state.phase.rawValue)
    switch state {
    case .waiting(let reason):
      metadata["reason"] = .string(reason.description.safeText)
      if let error = reason.error { add(error) }
    case .transferring:
      metadata["url"] = .string(request.safeURL)
    case .processing(let step):
      metadata["step"] = .string(step.safeText)
    case .finished(let artifact):
      metadata["name"] = .string(artifact.name.safeText)
      metadata["bytes"] = artifact.size.bytes.map { .stringConvertible($0) }
    case .failed(let error):
      add(error)
    case .paused, .cancelled:
      break
    }
  }

  private mutating func add(_ progress: TransferProgress) {
    metadata["bytes"] = .stringConvertible(progress.received)
    metadata["total"] = progress.total.bytes.map { .stringConvertible($0) }
  }

  private mutating func add(_ error: DownloadError) {
    metadata["code"] = .string(error.code.rawValue.safeText)
    metadata["error"] = .string(error.message.safeText)
    metadata["status"] = error.httpStatus.map { .stringConvertible($0) }
    metadata["stage"] = error.stage.map { .string($0.safeText) }
    metadata["attempt"] = error.attempt.map { .stringConvertible($0) }
    metadata["url"] = error.url.map { .string($0.safeText) }
  }
}
