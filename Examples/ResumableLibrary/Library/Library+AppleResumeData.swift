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
    let partial = try await downloader.exportPartial(id, to: file.path(percentEncoded: false))
    return try AppleResumeData(
      url: partial.request.url, bytesReceived: partial.count, entityTag: partial.validator?.entityTag,
      lastModified: partial.validator?.lastModified, localFile: file.lastPathComponent,
      headers: partial.request.headers
    ).data()
  }
}
