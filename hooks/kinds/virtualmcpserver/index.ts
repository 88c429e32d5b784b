/**
 * VirtualMCPServer: combines the members of a group into one running server.
 *
 * The sync checks every reference, and returns all desired children or, when a required part is broken, the running
 * children with the reasons in conditions.
 */
import { childKindsOf } from '../../sync/child-kinds.ts'
import type { HookEvent, SyncResponse } from '../../sync/protocol.ts'
import type { KubeObject } from '../../base/kube.ts'
import type { CheckObject, KindHooks } from '../kind-hooks.ts'
import { coreRelated, ownRelatedKinds } from '../../sync/rules.ts'
import type { SyncContext } from '../../sync/context.ts'
import { exposedKinds } from '../common/exposure.ts'
import { children, customize, relatedKinds } from './customize.ts'
import { build } from './build.ts'
import { deprecatedMessage, deprecatedPrimary, deprecatedReason } from './config/incoming.ts'
import { respond } from './respond.ts'
import { virtualServerViolations } from './validate.ts'
import { virtualServerWarnings } from './warnings.ts'

export const virtualMcpServer: KindHooks<'VirtualMCPServer'> = {
  kind: 'VirtualMCPServer',
  childKinds: childKindsOf(children),
  relatedKinds: [
    ...ownRelatedKinds([...new Set([...relatedKinds, ...exposedKinds])]),
    coreRelated.Secret,
    ...childKindsOf(children),
  ],
  validate: virtualServerViolations,
  warnings: virtualServerWarnings,
  customize,
  sync,
  events,
}

/** Emits the deprecation warning once per generation while the deprecated field has an effect. */
function events(parent: KubeObject, violationsOf: CheckObject): readonly HookEvent[] {
  if (deprecatedPrimary(parent) === undefined || violationsOf(parent).length > 0) return []
  return [{ parent, type: 'Warning', reason: deprecatedReason, message: deprecatedMessage }]
}

function sync(context: SyncContext<'VirtualMCPServer'>): SyncResponse {
  return respond(context, build(context))
}
