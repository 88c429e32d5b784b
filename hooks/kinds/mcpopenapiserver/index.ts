/**
 * MCPOpenAPIServer: declares a REST service as a member of a group. The sync checks the references and converts the
 * OpenAPI document to report its tools. It creates no objects: the virtual servers of the group convert the document
 * again and call the service.
 *
 * A document that becomes invalid does not remove the service from its group, because running virtual servers keep the
 * tools of the last valid document. The status then also keeps the counts of that document.
 */
import type { MCPOpenAPIServer, Violation } from '../../../schemas/index.ts'
import { reportLabels } from '../../children/labels.ts'
import { fieldsOf, textOf } from '../../base/kube.ts'
import type { CheckSettings } from '../../base/settings.ts'
import { specFailure } from '../../references/resolve.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import { type SyncContext, observedFields } from '../../sync/context.ts'
import { reportProgress } from '../../sync/progress.ts'
import type { CustomizeRequest, CustomizeResponse, SyncResponse } from '../../sync/protocol.ts'
import { coreRelated, relatedRules } from '../../sync/rules.ts'
import {
  checkRemote,
  referencesNotReady,
  remoteObjects,
  remoteRelatedKinds,
  remoteViolations,
} from '../common/remote-member.ts'
import type { KindHooks } from '../kind-hooks.ts'
import { checkDocument, type DocumentStatus, lastDocument } from './document.ts'

export const mcpOpenApiServer: KindHooks<'MCPOpenAPIServer'> = {
  kind: 'MCPOpenAPIServer',
  childKinds: [],
  relatedKinds: remoteRelatedKinds,
  isExpensive: true,
  validate: violationsOf,
  customize,
  sync,
}

function customize({ parent }: CustomizeRequest): CustomizeResponse {
  const objects = remoteObjects(parent)
  const document = fieldsOf(fieldsOf(parent['spec'])['document'])
  const map = textOf(fieldsOf(document['configMapRef'])['name'])
  const rules = relatedRules(parent, { ...objects, configMaps: [...objects.configMaps, map] })
  if (document['url'] === undefined) return rules
  // Selects reports by label, because a service does not refer to the servers that report on it.
  const reports = { ...coreRelated.ConfigMap, labelSelector: { matchLabels: reportLabels } }
  return { relatedResources: [...rules.relatedResources, reports] }
}

function addressesOf({ baseUrl, document }: MCPOpenAPIServer['spec']) {
  return [
    { field: 'spec.baseUrl', url: baseUrl },
    ...(document.url === undefined ? [] : [{ field: 'spec.document.url', url: document.url }]),
  ]
}

/** Maximum size of the settings that are copied into the configuration of each virtual server, as JSON. */
const maxSettingsBytes = 64 * 1024

function violationsOf({ spec }: MCPOpenAPIServer, settings: CheckSettings): Violation[] {
  const { operations, overrides } = spec
  const bytes = Buffer.byteLength(JSON.stringify({ operations, overrides }))
  const message = `operations and overrides have ${bytes} bytes; the maximum is ${maxSettingsBytes}`
  return [
    ...remoteViolations(spec, addressesOf(spec), settings),
    ...(bytes > maxSettingsBytes ? [{ path: 'spec', message }] : []),
  ]
}

function sync(context: SyncContext<'MCPOpenAPIServer'>): SyncResponse {
  const { conditions } = context
  const specFailed = specFailure(context.violations, 'ConfigInvalid')
  if (!specFailed) {
    checkRemote(context, addressesOf(context.spec), {
      type: 'BaseURLValidated',
      valid: 'BaseURLValid',
      invalid: 'BaseURLInvalid',
      message: 'The addresses are allowed',
    })
  }
  const broken = specFailed ? [specFailed] : conditions.list().filter(({ status }) => status === 'False')
  const { failure, document } = specFailed ? { document: lastDocument(context) } : checkDocument(context)
  const summary = broken.length > 0 ? (specFailed ?? referencesNotReady('service')) : failure
  conditions.check('Ready', summary, 'ServiceReady', 'The virtual servers of the group can use the service')
  reportProgress(context, { failures: [...broken, ...(failure ? [failure] : [])] })
  return {
    status: {
      phase: phaseOf(context, { broken, failure, document }),
      ...document,
      ...observedFields(context),
    },
    children: [],
  }
}

interface Findings {
  readonly broken: readonly unknown[]
  readonly failure: SyncFailure | undefined
  readonly document: DocumentStatus | undefined
}

function phaseOf(
  { spec }: SyncContext<'MCPOpenAPIServer'>,
  { broken, failure, document }: Findings,
): 'Ready' | 'Degraded' | 'Failed' {
  if (broken.length > 0) return 'Failed'
  if (!failure) return 'Ready'
  // A service with a document at a URL must stay a backend, because only the virtual servers can read the document.
  return document || spec.document.url !== undefined ? 'Degraded' : 'Failed'
}
