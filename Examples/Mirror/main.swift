// Mirrors the files of a manifest: swift run Mirror https://example.org/pub/SHA256SUMS ~/pub
import Downpipe
import Foundation

guard CommandLine.arguments.count == 3, let manifest = URL(string: CommandLine.arguments[1]) else {
  print("usage: Mirror <manifest> <folder>")
  exit(2)
}
do {
  let mirror = try await Mirror(CommandLine.arguments[2], of: manifest)
  let failed = try await mirror.update()
  for status in failed { print("\(status.id): \(status.error?.localizedDescription ?? "")") }
  await mirror.downloader.shutdown()
  exit(failed.isEmpty ? 0 : 1)
} catch {
  print(error.localizedDescription)
  exit(1)
}
