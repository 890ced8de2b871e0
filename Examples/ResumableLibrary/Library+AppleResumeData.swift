import Downpipe
import DownpipeAppleResumeData
import Foundation

// From URLSession, and back to it.
extension Library {
  /// Goes on with a film that URLSession has begun.
  ///
  /// - Parameters:
  ///   - film: the entry; its URL gives way to the one in the data.
  ///   - data: the resume data; what iOS 10 broke is repaired.
  ///   - folder: where the system keeps its temporary files now. The data has their names only.
  func add(_ film: Film, resumeData data: Data, temporaryFiles folder: String) async throws {
    let resumeData = try AppleResumeData(data).repaired()
    let checkpoint = try resumeData.checkpoint()
    var film = film
    film.url = resumeData.url
    var request = film.request
    request.headers = try resumeData.request(id: film.id).headers
    if let name = checkpoint.fileName {
      request.headStart = .init(
        file: "\(folder)/\(name)", count: checkpoint.bytesReceived, validator: checkpoint.validator)
    }
    try await downloader.add(request)
  }

  /// Brings resume data up to date: a fresh link, and the bytes that are there by now.
  static func updated(_ data: Data, url: URL, bytesReceived: Int64) throws -> Data {
    var resumeData = try AppleResumeData(data).repaired()
    try resumeData.refresh(url: url)
    try resumeData.update(bytesReceived: bytesReceived)
    return try resumeData.data()
  }

  /// Makes resume data by hand for a film that is paused, so that URLSession can go on with it.
  ///
  /// - Parameter file: where the bytes are copied to.
  func resumeData(of id: DownloadID, bytesTo file: URL) async throws -> Data {
    let pipeline = await downloader.pipeline
    let ledger = try await pipeline.ledger.open()
    let record = try await ledger.record(id)
    try await ledger.close()
    guard let record, record.phase == .paused else {
      throw DownloadError(.invalidRequest, "only a paused film can be handed to URLSession: pause “\(id)” first")
    }
    let count = record.checkpoint.ranges.prefixLength
    let partial = try await pipeline.storage.openPartial(record.partialKey, isNew: false)
    defer { try? partial.close() }
    try Data().write(to: file)
    let output = try FileHandle(forWritingTo: file)
    defer { try? output.close() }
    var offset: Int64 = 0
    while offset < count {
      let bytes = try partial.read(at: offset, count: Int(min(count - offset, 1 << 20)))
      if bytes.isEmpty { break }
      try output.write(contentsOf: bytes)
      offset += Int64(bytes.count)
    }
    let validator = record.checkpoint.validator
    return try AppleResumeData(
      url: record.request.url, bytesReceived: offset, entityTag: validator?.entityTag,
      lastModified: validator?.lastModified, localFile: file.lastPathComponent, headers: record.request.headers
    ).data()
  }
}
