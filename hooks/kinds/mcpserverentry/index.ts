/**
 * MCPServerEntry: declares a remote MCP endpoint as a member of a group. Creates nothing; its sync only checks.
 *
 * Every reference is one hop away and checked here, so that a virtual server needs no more than the phase.
 */
import { addressFailure } from '../../references/addresses.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { SyncContext } from '../../sync/context.ts'
import { fieldsOf, textOf } from '../../base/kube.ts'
import type { CustomizeRequest, CustomizeResponse, SyncResponse } from '../../sync/protocol.ts'
import {
  kindsNamedBy,
  namesByKind,
  resolveReferences,
  configReferences,
  groupReference,
} from '../../references/reference.ts'
import { checkCaBundles, specFailure } from '../../references/resolve.ts'
import type { KindHooks } from '../kind-hooks.ts'
import { coreRelated, ownRelatedKinds, relatedRules } from '../../sync/rules.ts'
import { reportProgress } from '../../sync/progress.ts'
import { observedFields } from '../../sync/status.ts'
import type { MCPServerEntry, Violation } from '../../../schemas/index.ts'
import type { CheckSettings } from '../../base/settings.ts'
import { headerForwardViolations } from '../common/checks/headers.ts'

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
      context.conditions.set(externalAuthCondition, 'True', 'AuthConfigNotConfigured', 'None is referenced')
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
    secrets: secretNames(headers),
    configMaps: [textOf(fieldsOf(fieldsOf(spec['caBundleRef'])['configMapRef'])['name'])],
  })
}

function secretNames(headers: unknown): (string | undefined)[] {
  const list: unknown[] = Array.isArray(headers) ? headers : []
  return list.map((item) => textOf(fieldsOf(fieldsOf(item)['valueSecretRef'])['name']))
}

function sync(context: SyncContext<'MCPServerEntry'>): SyncResponse {
  const { conditions } = context
  const specWrong = specFailure(context.violations, 'ConfigInvalid')
  if (!specWrong) check(context)
  // Not the summary: whether to wait or to act, and whether to tell people, hangs on the reason itself.
  const failures = specWrong ? [specWrong] : conditions.list().filter(({ status }) => status === 'False')
  const valid = failures.length === 0
  conditions.check(
    'Valid',
    valid ? undefined : (specWrong ?? summary),
    'ConfigValid',
    'The entry can be used',
  )
  reportProgress(context, { failures })
  return { status: { phase: valid ? 'Valid' : 'Failed', ...observedFields(context) }, children: [] }
}

const summary: SyncFailure = {
  reason: 'ReferencesNotReady',
  message: 'The entry cannot be used; the other conditions say why',
}

/** Sets a condition for each reference; what is False cannot be used. */
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
  else conditions.set('CABundleRefValidated', 'True', 'CABundleRefNotConfigured', 'None is referenced')
  checkHeaders(context)
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
