/**
 * MCPServerEntry: declares a remote MCP endpoint as a member of a group. The sync only checks the entry and creates no
 * objects.
 *
 * Because the sync checks all references, a virtual server reads only the entry's phase.
 */
import { addressFailure } from '../../references/addresses.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import { type SyncContext, observedFields } from '../../sync/context.ts'
import { fieldsOf, textOf } from '../../base/kube.ts'
import type { CustomizeRequest, CustomizeResponse, SyncResponse } from '../../sync/protocol.ts'
import {
  kindsNamedBy,
  namesByKind,
  resolveReferences,
  configReferences,
  groupReference,
} from '../../references/reference.ts'
import { clientCertificateFailure } from '../../runtime-config/client-certificate.ts'
import { checkCaBundles, specFailure } from '../../references/resolve.ts'
import type { KindHooks } from '../kind-hooks.ts'
import { coreRelated, ownRelatedKinds, relatedRules } from '../../sync/rules.ts'
import { reportProgress } from '../../sync/progress.ts'
import type { MCPServerEntry, Violation } from '../../../schemas/index.ts'
import type { CheckSettings } from '../../base/settings.ts'
import { headerForwardViolations } from '../../runtime-config/header-forward.ts'

interface EntryTarget {
  readonly context: SyncContext<'MCPServerEntry'>
}

const externalAuthCondition = 'ExternalAuthConfigValidated'

export const entryReferences = {
  group: groupReference({ valid: 'GroupRefIsValid', message: 'The group exists' }),
  externalAuth: configReferences<EntryTarget>()({
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

export const mcpServerEntry: KindHooks<'MCPServerEntry'> = {
  kind: 'MCPServerEntry',
  childKinds: [],
  relatedKinds: [
    ...ownRelatedKinds(kindsNamedBy(entryReferences)),
    coreRelated.ConfigMap,
    coreRelated.Secret,
  ],
  validate: entryViolations,
  customize,
  sync,
}

function customize({ parent }: CustomizeRequest): CustomizeResponse {
  const spec = fieldsOf(parent['spec'])
  const headers = fieldsOf(spec['headerForward'])['addHeadersFromSecret']
  return relatedRules(parent, {
    named: namesByKind(entryReferences, parent),
    secrets: [...secretNames(headers), textOf(fieldsOf(spec['clientCertificateSecretRef'])['name'])],
    configMaps: [textOf(fieldsOf(fieldsOf(spec['caBundleRef'])['configMapRef'])['name'])],
  })
}

function secretNames(headers: unknown): (string | undefined)[] {
  const list: unknown[] = Array.isArray(headers) ? headers : []
  return list.map((item) => textOf(fieldsOf(fieldsOf(item)['valueSecretRef'])['name']))
}

function sync(context: SyncContext<'MCPServerEntry'>): SyncResponse {
  const { conditions } = context
  const specFailed = specFailure(context.violations, 'ConfigInvalid')
  if (!specFailed) check(context)
  // Lists the individual failures instead of the summary, because the reason of a failure determines whether to wait or
  // to report a problem.
  const failures = specFailed ? [specFailed] : conditions.list().filter(({ status }) => status === 'False')
  const valid = failures.length === 0
  conditions.check('Valid', valid ? undefined : (specFailed ?? summary), 'ConfigValid', 'The entry is usable')
  reportProgress(context, { failures })
  return { status: { phase: valid ? 'Valid' : 'Failed', ...observedFields(context) }, children: [] }
}

const summary: SyncFailure = {
  reason: 'ReferencesNotReady',
  message: 'The entry is not usable; see the other conditions for the reason',
}

/** Sets a condition for each reference. Any False condition makes the entry unusable. */
function check(context: SyncContext<'MCPServerEntry'>): void {
  const { conditions, parent } = context
  const { remoteUrl, allowPrivateEndpoint, caBundleRef } = parent.spec
  const address = addressFailure(remoteUrl, {
    allowPrivateEndpoint,
    allowLoopback: context.settings.allowLoopback,
  })
  conditions.check(
    'RemoteURLValidated',
    address === undefined ? undefined : { reason: 'RemoteURLInvalid', message: `spec.remoteUrl ${address}` },
    'RemoteURLValid',
    'The address is allowed',
  )
  resolveReferences(entryReferences, { context })
  if (caBundleRef) checkCaBundles(context, [caBundleRef])
  else
    conditions.set('CABundleRefValidated', 'True', 'CABundleRefNotConfigured', 'No CA bundle is referenced')
  checkHeaders(context)
  if (parent.spec.clientCertificateSecretRef) {
    conditions.check(
      'ClientCertificateValidated',
      clientCertificateFailure(context, parent.spec.clientCertificateSecretRef),
      'ClientCertificateValid',
      'The Secret with the client certificate exists',
    )
  }
}

function checkHeaders(context: SyncContext<'MCPServerEntry'>): void {
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

function entryViolations({ spec }: MCPServerEntry, settings: CheckSettings): Violation[] {
  const failure = addressFailure(spec.remoteUrl, {
    allowPrivateEndpoint: spec.allowPrivateEndpoint,
    allowLoopback: settings.allowLoopback,
  })
  return [
    ...(failure === undefined ? [] : [{ path: 'spec.remoteUrl', message: failure }]),
    ...headerForwardViolations(spec.headerForward, 'spec.headerForward'),
  ]
}
