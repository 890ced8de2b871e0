import DownpipeCore
import Foundation

/// Commands for downloads that exist.
extension Aria2 {
  static let stopped: Set<DownloadState.Phase> = [.finished, .failed, .cancelled]
  private static let ok: JSONValue = "OK"

  private func find(_ parameters: Parameters) async throws -> (status: DownloadStatus, gid: JSONValue) {
    let status = try await gids.status(of: try parameters.string(0))
    return (status, .string(gids.gid(of: status.id).text))
  }

  func remove(_ parameters: Parameters) async throws -> JSONValue {
    let (status, gid) = try await find(parameters)
    guard !status.state.phase.isFinal, try await downloader.cancel(status.id) else {
      throw RPCFailure("Active Download not found for GID#\(gid.text ?? "")")
    }
    return gid
  }

  func pause(_ parameters: Parameters) async throws -> JSONValue {
    let (status, gid) = try await find(parameters)
    guard try await downloader.pause(status.id) else {
      throw RPCFailure("GID#\(gid.text ?? "") cannot be paused now")
    }
    return gid
  }

  func pauseAll() async throws -> JSONValue {
    _ = try await downloader.pauseAll()
    return Self.ok
  }

  func unpause(_ parameters: Parameters) async throws -> JSONValue {
    let (status, gid) = try await find(parameters)
    guard status.state == .paused, try await downloader.resume(status.id) else {
      throw RPCFailure("GID#\(gid.text ?? "") cannot be unpaused now")
    }
    return gid
  }

  func unpauseAll() async throws -> JSONValue {
    _ = try await downloader.resumeAll(.phases([.paused]))
    return Self.ok
  }

  func purge() async throws -> JSONValue {
    _ = try await downloader.removeAll(.phases(Self.stopped))
    return Self.ok
  }

  func removeResult(_ parameters: Parameters) async throws -> JSONValue {
    let (status, gid) = try await find(parameters)
    guard status.state.phase.isFinal, try await downloader.remove(status.id) else {
      throw RPCFailure("Could not remove download result of GID#\(gid.text ?? "")")
    }
    return Self.ok
  }

  func changePosition(_ parameters: Parameters) async throws -> JSONValue {
    let text = try parameters.string(0)
    let number = try parameters.integer(1)
    let target: QueueMove.Target
    switch try parameters.string(2) {
    case "POS_SET": target = .index(number)
    case "POS_CUR": target = .steps(number)
    case "POS_END": target = .fromEnd(number)
    default: throw RPCFailure("Illegal argument.")
    }
    let status = try await gids.status(of: text)
    guard let index = try await QueueMove(downloader: downloader).move(status.id, to: target) else {
      throw RPCFailure("GID#\(gids.gid(of: status.id).text) not found in the waiting queue.")
    }
    return .integer(Int64(index))
  }

  /// Removes and adds places of a file. Each text that is removed removes one place; aria2's position of the new ones counts
  /// what is left.
  func changeURI(_ parameters: Parameters) async throws -> JSONValue {
    let text = try parameters.string(0)
    guard try parameters.integer(1, atLeast: 1) == 1 else { throw RPCFailure("fileIndex is out of range") }
    let removed = try parameters.strings(2)
    let texts = try parameters.strings(3)
    let position = try parameters.optionalInteger(4)
    if let position, position < 0 { throw RPCFailure("Position must be greater than or equal to 0.") }
    let added = texts.compactMap { try? url($0) }
    let status = try await gids.status(of: text)
    guard !status.state.phase.isFinal else {
      throw RPCFailure("Cannot remove URIs from GID#\(gids.gid(of: status.id).text)")
    }
    var change = PlaceChange(removed: removed, added: added, position: position)
    let before = [status.request.url] + status.request.mirrors
    let (after, counts) = change.apply(to: before)
    guard !after.isEmpty else { throw RPCFailure("A download needs a URI: add one in the same call.") }
    _ = try await downloader.update(status.id) { [change, configuration] request in
      var change = change
      let (urls, _) = change.apply(to: [request.url] + request.mirrors)
      guard let first = urls.first else { return }
      if request.url != first { request.url = first }
      request.mirrors = Array(urls.dropFirst())
      if !change.added.isEmpty { try configuration.prepareChange(&request) }
    }
    return [.integer(Int64(counts.removed)), .integer(Int64(counts.added))]
  }

  private struct PlaceChange: Sendable {
    var removed: [String]
    var added: [URL]
    var position: Int?

    mutating func apply(to urls: [URL]) -> (urls: [URL], counts: (removed: Int, added: Int)) {
      var urls = urls
      var count = 0
      for text in removed {
        guard let index = urls.firstIndex(where: { $0.absoluteString == text }) else { continue }
        urls.remove(at: index)
        count += 1
      }
      var known = Set(urls)
      let new = added.filter { known.insert($0).inserted }
      urls.insert(contentsOf: new, at: min(position ?? urls.count, urls.count))
      return (urls, (count, new.count))
    }
  }
}
