/**
 * Rules for the issuers that an authorization server trusts, and for the subjects that get tokens. Admission and the
 * runtime check the same rules.
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer; RFC 7523 section 3.
 */
import { GatehouseError } from '../errors.ts'
import type {
  FederatedIdentity,
  JwtBearerIssuerPolicy,
  SubjectBinding,
  TokenExchangeIssuerPolicy,
  TrustedIssuer,
} from '../generated/types.ts'
import { compileBoundedCel } from '../validation/cel.ts'
import type { Violation } from '../validation/violations.ts'

type Preset = NonNullable<TrustedIssuer['preset']>
type Trusted = Pick<TrustedIssuer, 'name' | 'issuerUrl' | 'preset'>

/** The authorization server's fields that these rules check. */
interface TrustSettings {
  readonly issuer: string
  readonly cimd?: { readonly enabled: boolean } | undefined
  readonly clients?:
    | readonly { readonly clientId: string; readonly federated?: FederatedIdentity | undefined }[]
    | undefined
  readonly trustedIssuers?: readonly Trusted[] | undefined
  readonly inboundGrants?:
    | {
        readonly jwtBearer?: { readonly issuerPolicies: readonly JwtBearerIssuerPolicy[] } | undefined
        readonly spiffeClientAuth?: readonly object[] | undefined
        readonly tokenExchange?:
          | { readonly issuerPolicies?: readonly TokenExchangeIssuerPolicy[] | undefined }
          | undefined
      }
    | undefined
}

const serviceAccount = /^system:serviceaccount:[a-z0-9-]{1,63}:[a-z0-9.-]{1,253}$/

/** Claims that still identify a project after its name was reassigned to another project. */
const lastingClaims: Readonly<Partial<Record<Preset, readonly string[]>>> = {
  github: ['repository_id', 'repository_owner_id'],
  gitlab: ['project_id', 'namespace_id'],
}

/** Returns the name of the ServiceAccount in a subject, or undefined for any other subject. */
export function serviceAccountOf(
  subject: string,
): { readonly namespace: string; readonly name: string } | undefined {
  if (!serviceAccount.test(subject)) return undefined
  const [, , namespace = '', name = ''] = subject.split(':')
  return { namespace, name }
}

/** Returns the default of `maxAssertionAge`. A pod's token is valid for an hour. */
export function defaultAssertionAge(preset: Preset | undefined): string {
  return preset === 'kubernetes' ? '1h' : '5m'
}

/** Returns every violation in the trusted issuers and in the policies that refer to them. */
export function trustViolations(settings: TrustSettings): readonly Violation[] {
  const { trustedIssuers = [], clients = [], inboundGrants } = settings
  const policies = inboundGrants?.jwtBearer?.issuerPolicies ?? []
  const exchanged = inboundGrants?.tokenExchange?.issuerPolicies ?? []
  const references = [...policies, ...exchanged, ...clients.map(({ federated }) => federated)]
  return [
    ...trustedIssuers.flatMap((issuer, index) =>
      issuerViolations(settings, issuer, index).map((message) => ({
        path: `trustedIssuers[${index}].issuerUrl`,
        message,
      })),
    ),
    ...trustedIssuers.flatMap(({ name }, index) =>
      references.some((reference) => reference?.issuerRef === name)
        ? []
        : [{ path: `trustedIssuers[${index}].name`, message: 'no issuerRef refers to this issuer' }],
    ),
    ...federatedViolations(settings),
    ...policies.flatMap((policy, index) =>
      [...policyViolations(policy, trustedIssuers), ...idJagViolations(policy, settings)].map(
        ({ path, message }) => ({
          path: `inboundGrants.jwtBearer.issuerPolicies[${index}].${path}`,
          message,
        }),
      ),
    ),
    ...exchanged.flatMap((policy, index) =>
      exchangeViolations(policy, settings).map(({ path, message }) => ({
        path: `inboundGrants.tokenExchange.issuerPolicies[${index}].${path}`,
        message,
      })),
    ),
  ]
}

/** Returns every violation in the identities of clients at trusted issuers. */
export function federatedViolations({
  trustedIssuers = [],
  clients = [],
}: Pick<TrustSettings, 'trustedIssuers' | 'clients'>): readonly Violation[] {
  return clients.flatMap(({ federated }, index) => {
    if (!federated) return []
    const at = `clients[${index}].federated`
    const { issuerRef, subject } = federated
    const issuer = trustedIssuers.find(({ name }) => name === issuerRef)
    if (!issuer) return [{ path: `${at}.issuerRef`, message: 'must be the name of one of trustedIssuers' }]
    // In requests without client_id, the subject identifies the client.
    const first = clients.findIndex(
      ({ federated: other }) => other?.issuerRef === issuerRef && other.subject === subject,
    )
    return [
      ...(subject === undefined || first === index
        ? []
        : [{ path: `${at}.subject`, message: `is already used by clients[${first}]` }]),
      ...bindingViolations(federated, issuer.preset).map(({ path, message }) => ({
        path: `${at}.${path}`,
        message,
      })),
    ]
  })
}

/** An identity assertion requires a client that can authenticate. Platforms do not issue identity assertions. */
function idJagViolations(
  { issuerRef, acceptedAssertionTypes }: JwtBearerIssuerPolicy,
  { trustedIssuers = [], clients = [], cimd, inboundGrants }: TrustSettings,
): readonly Violation[] {
  if (!acceptedAssertionTypes.includes('id_jag')) return []
  const path = 'acceptedAssertionTypes'
  const preset = trustedIssuers.find(({ name }) => name === issuerRef)?.preset
  return [
    ...(preset === undefined ? [] : [{ path, message: `id_jag is not allowed for the preset ${preset}` }]),
    ...(clients.length > 0 || inboundGrants?.spiffeClientAuth !== undefined || cimd?.enabled === true
      ? []
      : [{ path, message: 'id_jag requires clients, or cimd.enabled for clients with a metadata document' }]),
  ]
}

function exchangeViolations(
  { issuerRef, actorMatcher, allowedDelegateClients }: TokenExchangeIssuerPolicy,
  { trustedIssuers = [], clients = [] }: TrustSettings,
): readonly Violation[] {
  const error = actorMatcher === undefined ? undefined : celError(actorMatcher)
  const isDeclared = (id: string): boolean =>
    id === '*' ? clients.length > 0 : clients.some(({ clientId }) => clientId === id)
  return [
    ...(trustedIssuers.some(({ name }) => name === issuerRef) ? [] : [unknownIssuer]),
    ...(error === undefined ? [] : [{ path: 'actorMatcher', message: error }]),
    ...allowedDelegateClients.flatMap((id, index) =>
      isDeclared(id)
        ? []
        : [{ path: `allowedDelegateClients[${index}]`, message: 'must be the clientId of one of clients' }],
    ),
  ]
}

const unknownIssuer: Violation = {
  path: 'issuerRef',
  message: 'must be the name of one of trustedIssuers',
}

function issuerViolations(
  { issuer, trustedIssuers = [] }: TrustSettings,
  { issuerUrl }: Trusted,
  index: number,
): readonly string[] {
  if (!URL.canParse(issuerUrl)) return ['is not a valid URL']
  const { username, password } = new URL(issuerUrl)
  const first = trustedIssuers.findIndex((other) => other.issuerUrl === issuerUrl)
  return [
    ...(username === '' && password === '' ? [] : ['must not contain credentials']),
    // A subject of this server consists of the issuer, "#" and the issuer's subject.
    ...(/[?#]/.test(issuerUrl) ? ['must not have a query or a fragment'] : []),
    ...(issuerUrl === issuer ? ['must not be the issuer of this server'] : []),
    ...(first === index ? [] : [`is already used by trustedIssuers[${first}]`]),
  ]
}

function policyViolations(
  { issuerRef, subjectBindings = [] }: JwtBearerIssuerPolicy,
  trustedIssuers: readonly Trusted[],
): readonly Violation[] {
  const issuer = trustedIssuers.find(({ name }) => name === issuerRef)
  if (!issuer) return [unknownIssuer]
  return subjectBindings.flatMap((binding, index) => {
    const at = `subjectBindings[${index}]`
    const first = subjectBindings.findIndex((other) => isSameSelector(other, binding))
    return [
      ...(first === index
        ? []
        : [{ path: at, message: `has the same selector as subjectBindings[${first}]` }]),
      ...bindingViolations(binding, issuer.preset).map(({ path, message }) => ({
        path: `${at}.${path}`,
        message,
      })),
    ]
  })
}

function isSameSelector(a: SubjectBinding, b: SubjectBinding): boolean {
  return a.subject === b.subject && a.matcher === b.matcher
}

function bindingViolations(
  { subject, matcher }: Pick<SubjectBinding, 'subject' | 'matcher'>,
  preset: Preset | undefined,
): readonly Violation[] {
  const lasting = preset === undefined ? undefined : lastingClaims[preset]
  const ofProject =
    lasting && `must compare ${lasting.join(' or ')}, because the name of a project can be reassigned`
  if (subject !== undefined) {
    if (ofProject !== undefined)
      return [{ path: 'subject', message: `is not allowed for ${preset}; a matcher ${ofProject}` }]
    if (preset !== 'kubernetes' || serviceAccount.test(subject)) return []
    return [{ path: 'subject', message: 'must have the form system:serviceaccount:<namespace>:<name>' }]
  }
  if (matcher === undefined) return []
  const error = celError(matcher)
  if (error !== undefined) return [{ path: 'matcher', message: error }]
  const isLasting = lasting?.some((claim) => new RegExp(`\\b${claim}\\b`).test(matcher)) ?? true
  return isLasting ? [] : [{ path: 'matcher', message: ofProject ?? '' }]
}

function celError(expression: string): string | undefined {
  try {
    compileBoundedCel(expression)
    return undefined
  } catch (error) {
    return error instanceof GatehouseError ? error.message : 'is not a valid CEL expression'
  }
}
