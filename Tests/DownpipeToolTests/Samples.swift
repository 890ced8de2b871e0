import DownpipeCore
import Foundation

@testable import DownpipeTool

/// Statuses and results to show.
enum Samples {
  static let now = Date(timeIntervalSince1970: 1_800_000_000)

  static func status(
    _ state: DownloadState = .transferring, name: String? = "film.mkv", received: Int64 = 0,
    total: ByteCount = .unknown, speed: Double? = nil, url: String = "https://example.org/film.mkv",
    resumedFrom: Int64 = 0, bytesFetched: Int64? = nil, attempts: Int = 1
  ) -> DownloadStatus {
    let link = URL(string: url) ?? URL(filePath: "/")
    let id = DownloadIdentity(url: url, outputName: nil).id
    return DownloadStatus(
      id: id, request: DownloadRequest(link, id: id), state: state,
      progress: TransferProgress(received: received, total: total, bytesPerSecond: speed), attempts: attempts,
      resumedFrom: resumedFrom, bytesFetched: bytesFetched ?? received - resumedFrom, name: name, createdAt: now,
      updatedAt: now)
  }

  static func result(
    path: String? = "/files/film.mkv", bytes: Int64 = 2048, attempts: Int = 1, resumedFrom: Int64 = 0,
    error: DownloadError? = nil, url: String = "https://example.org/film.mkv"
  ) -> DownloadResult {
    DownloadResult(
      id: "00000000deadbeef", url: url, path: error == nil ? path : nil, bytes: bytes, attempts: attempts,
      resumedFrom: resumedFrom, bytesFetched: bytes - resumedFrom, error: error)
  }
}
