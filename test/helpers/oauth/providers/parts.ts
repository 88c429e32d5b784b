/** Parts that several profiles share. */
import type { PeerResponse } from '../../loopback.ts'
import { clientId, clientSecret, type Place, type UpstreamPart } from './profile.ts'

export const asks =
  (scope: string) =>
  (query: URLSearchParams): boolean =>
    (query.get('scope') ?? '').split(' ').includes(scope)

export const refused = (status: number, error: string, error_description: string): PeerResponse => ({
  status,
  body: { error, error_description },
})

export const s256 = { code_challenge_methods_supported: ['S256'] }
export const openid = {
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['RS256'],
}
export const confidential = { remoteAuthClientId: clientId, remoteAuthClientSecret: clientSecret }

export const oidc =
  (scopes: readonly string[], more: object = {}) =>
  (place: Place): UpstreamPart => ({
    type: 'oidc',
    issuerUrl: place.issuer,
    clientId,
    clientSecret: () => clientSecret,
    scopes,
    subjectClaim: 'sub',
    ...more,
  })

export const oauth2 =
  (scopes: readonly string[], more: (place: Place) => object) =>
  (place: Place): UpstreamPart => ({
    type: 'oauth2',
    authorizationEndpoint: place.authorize,
    tokenEndpoint: place.token,
    clientId,
    clientSecret: () => clientSecret,
    scopes,
    ...more(place),
  })

export const userInfo = (place: Place, subject: string) => ({
  userInfo: {
    endpointUrl: `${place.api}/user`,
    httpMethod: 'GET' as const,
    additionalHeaders: {},
    subjectFields: [subject],
    nameFields: ['name'],
    emailFields: ['email'],
  },
})
