import Downpipe
import DownpipeAppleResumeData
import Foundation

// Exchange of resume data with URLSession.
extension Library {
  /// Adds a film that URLSession has partly downloaded, and resumes it.
  ///
  /// - Parameters:
  ///   - film: The entry. The URL in the data replaces its URL.
  ///   - data: The resume data. Data that iOS 10 wrote incorrectly is repaired.
  ///   - folder: The system's present folder of temporary files. The data contains only file names.
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

  /// Updates resume data with a new link and the present number of bytes.
  static func updated(_ data: Data, url: URL, bytesReceived: Int64) throws -> Data {
    var resumeData = try AppleResumeData(data).repaired()
    try resumeData.refresh(url: url)
    try resumeData.update(bytesReceived: bytesReceived)
    return try resumeData.data()
  }

  /// Makes resume data for a paused film, so that URLSession can resume it.
  ///
  /// - Parameter file: The file that the received bytes are copied to.
  func resumeData(of id: DownloadID, bytesTo file: URL) async throws -> Data {
    let partial = try await downloader.exportPartial(id, to: file.path(percentEncoded: false))
    return try AppleResumeData(
      url: partial.request.url, bytesReceived: partial.count, entityTag: partial.validator?.entityTag,
      lastModified: partial.validator?.lastModified, localFile: file.lastPathComponent,
      headers: partial.request.headers
    ).data()
  }
}
