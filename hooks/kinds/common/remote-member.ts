/**
 * The checks that MCPServerEntry and MCPOpenAPIServer share. Both kinds declare a remote service that virtual servers
 * call directly. Their syncs create no objects and check all references, so a virtual server reads only the phase.
 */
import type { CABundleSource, HeaderForwardConfig, ObjectRef, Violation } from '../../../schemas/index.ts'
import { fieldsOf, type KubeObject, textOf } from '../../base/kube.ts'
import type { CheckSettings } from '../../base/settings.ts'
import { addressFailure } from '../../references/addresses.ts'
import {
  configReferences,
  groupReference,
  kindsNamedBy,
  namesByKind,
  resolveReferences,
} from '../../references/reference.ts'
import { checkCaBundles } from '../../references/resolve.ts'
import { clientCertificateFailure } from '../../runtime-config/client-certificate.ts'
import { headerForwardViolations } from '../../runtime-config/header-forward.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { AnyContext } from '../../sync/context.ts'
import { coreRelated, ownRelatedKinds, type WantedObjects } from '../../sync/rules.ts'

/** The fields that both kinds have. */
interface RemoteSpec {
  readonly allowPrivateEndpoint: boolean
  readonly externalAuthConfigRef?: ObjectRef
  readonly headerForward?: HeaderForwardConfig
  readonly caBundleRef?: CABundleSource
  readonly clientCertificateSecretRef?: ObjectRef
}

type RemoteContext = AnyContext & { readonly spec: RemoteSpec }

/** An address in the spec. */
interface RemoteAddress {
  /** Path of the field. */
  readonly field: string
  readonly url: string
}

const externalAuthCondition = 'ExternalAuthConfigValidated'

export const remoteReferences = {
  group: groupReference({ valid: 'GroupRefIsValid', message: 'The group exists' }),
  externalAuth: configReferences<{ readonly context: RemoteContext }>()({
    field: 'spec.externalAuthConfigRef',
    kind: 'MCPExternalAuthConfig',
    condition: {
      type: externalAuthCondition,
      valid: 'AuthConfigValid',
      notFound: 'AuthConfigNotFound',
      notValid: 'InvalidExternalAuthConfig',
      message: 'The MCPExternalAuthConfig exists and is valid',
    },
    toConfig: () => ({ value: undefined }),
    otherwise({ context }) {
      context.conditions.set(
        externalAuthCondition,
        'True',
        'AuthConfigNotConfigured',
        'No MCPExternalAuthConfig is referenced',
      )
      return { value: undefined }
    },
  }),
} as const

export const remoteRelatedKinds = [
  ...ownRelatedKinds(kindsNamedBy(remoteReferences)),
  coreRelated.ConfigMap,
  coreRelated.Secret,
]

/** Lists the objects that a member refers to. The spec may be invalid. */
export function remoteObjects(parent: KubeObject) {
  const spec = fieldsOf(parent['spec'])
  const headers = fieldsOf(spec['headerForward'])['addHeadersFromSecret']
  return {
    named: namesByKind(remoteReferences, parent),
    secrets: [...secretNames(headers), textOf(fieldsOf(spec['clientCertificateSecretRef'])['name'])],
    configMaps: [textOf(fieldsOf(fieldsOf(spec['caBundleRef'])['configMapRef'])['name'])],
  } satisfies WantedObjects
}

function secretNames(headers: unknown): (string | undefined)[] {
  const list: unknown[] = Array.isArray(headers) ? headers : []
  return list.map((item) => textOf(fieldsOf(fieldsOf(item)['valueSecretRef'])['name']))
}

/** The condition for the addresses of a member. */
interface AddressCondition {
  readonly type: string
  readonly valid: string
  readonly invalid: string
  readonly message: string
}

/** Sets a condition for the addresses and for each reference. Any False condition makes the member unusable. */
export function checkRemote(
  context: RemoteContext,
  addresses: readonly RemoteAddress[],
  { type, valid, invalid, message }: AddressCondition,
): void {
  const { conditions, settings, spec } = context
  const [violation] = addressViolations(spec, addresses, settings)
  const failure = violation && { reason: invalid, message: `${violation.path} ${violation.message}` }
  conditions.check(type, failure, valid, message)
  resolveReferences(remoteReferences, { context })
  if (spec.caBundleRef) checkCaBundles(context, [spec.caBundleRef])
  else
    conditions.set('CABundleRefValidated', 'True', 'CABundleRefNotConfigured', 'No CA bundle is referenced')
  checkHeaders(context)
  if (spec.clientCertificateSecretRef) {
    conditions.check(
      'ClientCertificateValidated',
      clientCertificateFailure(context, spec.clientCertificateSecretRef),
      'ClientCertificateValid',
      'The Secret with the client certificate exists',
    )
  }
}

function checkHeaders(context: RemoteContext): void {
  const headers = context.spec.headerForward?.addHeadersFromSecret ?? []
  if (headers.length === 0) return
  const refs = headers.map((header) => header.valueSecretRef)
  const missing = context.missingSecrets(refs)
  const failure = { reason: 'HeaderSecretNotFound', message: `Not found: ${missing.join(', ')}` }
  context.conditions.check(
    'HeaderSecretRefsValidated',
    missing.length > 0 ? failure : undefined,
    'HeaderSecretsValid',
    `All header Secrets exist (revision ${context.secretRevision(refs)})`,
  )
}

/** Returns the failure of a member with broken references. The other conditions contain the reasons. */
export function referencesNotReady(member: 'entry' | 'service'): SyncFailure {
  const message = `The ${member} is not usable; see the other conditions for the reason`
  return { reason: 'ReferencesNotReady', message }
}

/** Returns the violations that the schemas of both kinds cannot express. */
export function remoteViolations(
  spec: RemoteSpec,
  addresses: readonly RemoteAddress[],
  settings: CheckSettings,
): Violation[] {
  return [
    ...addressViolations(spec, addresses, settings),
    ...headerForwardViolations(spec.headerForward, 'spec.headerForward'),
  ]
}

function addressViolations(
  { allowPrivateEndpoint }: RemoteSpec,
  addresses: readonly RemoteAddress[],
  { allowLoopback }: CheckSettings,
): Violation[] {
  return addresses.flatMap(({ field, url }) => {
    const message = addressFailure(url, { allowPrivateEndpoint, allowLoopback })
    return message === undefined ? [] : [{ path: field, message }]
  })
}
