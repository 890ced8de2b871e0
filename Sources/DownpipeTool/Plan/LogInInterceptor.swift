import Downpipe
import Foundation

/// Adds the `Authorization` field of `--user` and `--bearer` to each request for the origin of the URL that the user gave.
/// Mirrors on other origins and places that a server names do not get it. Neither the request of the download nor its
/// record in the ledger has it, and the source does not send it to another origin.
///
/// User information in a URL and a field of `--header` win. Downloads that were added with `--untrusted` do not get it.
struct LogInInterceptor: RequestInterceptor {
  /// The value of the field.
  private let field: Secret
  /// Further origins that get it, for downloads of earlier commands.
  private let origins: Set<Origin>?

  /// `nil` where requests need no field.
  init?(_ settings: LogInSettings) {
    if let token = settings.bearerToken {
      field = Secret("Bearer " + token.text)
    } else if let logIn = settings.logIn, settings.method == .basic {
      field = Secret("Basic " + Data("\(logIn.user):\(logIn.password)".utf8).base64EncodedString())
    } else {
      return nil
    }
    origins = settings.origins
  }

  var name: String { "LogIn" }

  func intercept(_ request: SourceRequest, next: RequestInterceptorNext) async throws -> SourceReply {
    try await next(authorized(request))
  }

  func authorized(_ request: SourceRequest) -> SourceRequest {
    let url = request.url
    guard !request.isUntrusted, !request.isNamedByServer, request.headers["Authorization"] == nil,
      (url.user(percentEncoded: true) ?? "").isEmpty,
      (url.password(percentEncoded: true) ?? "").isEmpty
    else { return request }
    guard let origin = Origin(url), request.isForLogIn || origins?.contains(origin) ?? false else { return request }
    var request = request
    // Not bound to the download's origin: a mirror at one of the known origins gets it, too.
    request.headers.fields.append(HeaderField("Authorization", field.text, scope: .origin(origin)))
    return request
  }
}
