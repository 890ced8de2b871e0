package import DownpipeCore
package import Foundation

#if canImport(FoundationNetworking)
  package import FoundationNetworking
#endif

/// Checks request URLs and makes Foundation's requests from them.
package enum RequestURL {
  package static func isSupported(_ url: URL) -> Bool {
    let text = URLText(url)
    return text.isHTTP && text.host?.isEmpty == false
  }

  /// Returns Foundation's request for the current URL. It asks for path and query as they are written, and sends user
  /// information as `Authorization`, because Foundation would not send it before a server asks for it.
  package static func request(_ redirects: Redirects) -> URLRequest {
    let text = HTTPURL.wireText(redirects.url)
    var request = URLRequest(url: URL(string: text, encodingInvalidCharacters: false) ?? redirects.url)
    request.httpMethod = "GET"
    request.timeoutInterval = URLSessionSource.Configuration.never
    request.httpShouldHandleCookies = false
    for field in redirects.fields.fields { request.addValue(field.value, forHTTPHeaderField: field.name) }
    if let (user, password) = redirects.userInfo {
      let credentials = Data("\(user):\(password ?? "")".utf8).base64EncodedString()
      request.setValue("Basic \(credentials)", forHTTPHeaderField: "Authorization")
    }
    return request
  }
}
