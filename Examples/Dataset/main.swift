// Fetches a file into a cache: swift run Dataset https://example.org/data elevation.csv.gz <its SHA-256> ~/.cache/data
import Downpipe
import Foundation

let arguments = CommandLine.arguments
guard arguments.count == 5, let mirror = URL(string: arguments[1]) else {
  print("usage: Dataset <mirror> <name> <sha256> <folder>")
  exit(2)
}
do {
  let dataset = try await Dataset(arguments[4], mirrors: [mirror], files: [arguments[2]: arguments[3]])
  if let file = try await dataset.fetch(arguments[2]) { print(file.path(percentEncoded: false)) }
  await dataset.downloader.shutdown()
} catch {
  print(error.localizedDescription)
  exit(1)
}
