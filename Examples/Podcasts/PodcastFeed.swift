import Foundation

/// A show and its episodes, read from the show's JSON Feed 1.1.
struct PodcastFeed: Sendable, Decodable {
  struct Episode: Sendable, Decodable {
    struct Attachment: Sendable, Decodable {
      var url: URL
      var sizeInBytes: Int64?
    }
    var id: String
    var title: String
    var datePublished: Date
    var attachments: [Attachment]?
  }
  var title: String
  var items: [Episode]

  init(_ json: Data) throws {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    decoder.dateDecodingStrategy = .iso8601
    self = try decoder.decode(PodcastFeed.self, from: json)
  }
}
