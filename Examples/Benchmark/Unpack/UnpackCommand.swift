import ArgumentParser
import Downpipe
import Foundation

#if Archive
  import DownpipeArchive
#endif

/// Downloads an archive and unpacks it: what the row `untar` measures.
struct UnpackCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unpack", abstract: "Download an archive and unpack it. Needs the trait Archive.")

  @Argument(help: "The URL of the archive.") var url: String
  @Option(help: "The folder for the files.", completion: .directory) var folder: String

  func run() async throws {
    #if Archive
      let downloader = try await Downloader {
        HTTPSource()
        FileStore(folder)
        VerifyChecksum()
        Unarchive()
      }
      do {
        _ = try await downloader.add(url).value
      } catch {
        await downloader.shutdown()
        throw error
      }
      await downloader.shutdown()
    #else
      throw ValidationError("This was built without the trait Archive: swift run --traits SQLite,Curl,Archive …")
    #endif
  }
}
