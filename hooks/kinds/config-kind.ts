/**
 * Hooks for configuration kinds. The hooks validate an object, resolve its Secrets and ConfigMaps, and write a hash and
 * a list of referrers to its status. Configuration kinds have no children.
 *
 * The hash covers the resource versions of referenced objects, so rotating a Secret changes the hash and restarts every
 * consumer's pods. The hash excludes Secrets that pods reread. An invalid object keeps its previous hash.
 */
import {
  type CABundleSource,
  hashOf,
  type KindName,
  type Kinds,
  type SecretRef,
} from '../../schemas/index.ts'
import type { SyncFailure } from '../sync/conditions.ts'
import { type AnyContext, type SyncContext, observedFields } from '../sync/context.ts'
import { fieldsOf, definedFields } from '../base/kube.ts'
import type { CustomizeRequest, CustomizeResponse, SyncResponse } from '../sync/protocol.ts'
import { type CaBundleCheck, checkCaBundles, specFailure } from '../references/resolve.ts'
import { kindsReferringTo, referrersOf } from './referrers.ts'
import { caBundleNamesIn, secretNamesIn } from '../references/secret-names.ts'
import type { KindHooks } from './kind-hooks.ts'
import { coreRelated, ownRelatedKinds, relatedRules } from '../sync/rules.ts'
import { reportProgress } from '../sync/progress.ts'

interface ConfigKind<K extends KindName> extends Pick<KindHooks<K>, 'kind' | 'validate' | 'warnings'> {
  readonly validReason: string
  readonly invalidReason: string
  /** Lists the Secrets that the object refers to. Receives a valid object. */
  readonly secrets?: (parent: Kinds[K]) => readonly SecretRef[]
  /** Lists the Secrets that pods reread. Rotating such a Secret does not change the hash. */
  readonly rereadSecrets?: (parent: Kinds[K]) => readonly SecretRef[]
  /** Lists the ConfigMaps with trust anchors that the object refers to. Receives a valid object. */
  readonly caBundles?: (parent: Kinds[K]) => readonly CABundleSource[]
  /** Lists the bundles in `caBundles` whose changes do not require new pods. */
  readonly rereadBundles?: (parent: Kinds[K]) => readonly CABundleSource[]
  /** Reports errors and conditions that `validate` does not cover. Receives a valid object. */
  readonly check?: (context: SyncContext<K>) => SyncFailure | undefined
}

export function configKind<K extends KindName>(kind: ConfigKind<K>): KindHooks<K> {
  const { validate, warnings } = kind
  return {
    kind: kind.kind,
    childKinds: [],
    relatedKinds: [
      ...ownRelatedKinds(kindsReferringTo(kind.kind)),
      ...(kind.secrets ? [coreRelated.Secret] : []),
      ...(kind.caBundles ? [coreRelated.ConfigMap] : []),
    ],
    ...definedFields({ warnings }),
    validate,
    customize: (request) => customize(kind, request),
    sync: (context) => sync(kind, context),
  }
}

function customize<K extends KindName>(kind: ConfigKind<K>, { parent }: CustomizeRequest): CustomizeResponse {
  return relatedRules(parent, {
    kinds: kindsReferringTo(kind.kind),
    ...(kind.secrets && { secrets: secretNamesIn(parent['spec']) }),
    ...(kind.caBundles && { configMaps: caBundleNamesIn(parent['spec']) }),
  })
}

function sync<K extends KindName>(kind: ConfigKind<K>, context: SyncContext<K>): SyncResponse {
  const { failure, absent } = check(kind, context)
  context.conditions.check('Valid', failure, kind.validReason, 'Spec validation passed')
  reportProgress(context, { failures: failure ? [failure] : [] })
  const { count, workloads } = referrersOf(context, kind.kind)
  const status = definedFields({
    ...observedFields(context),
    configHash: failure ? previousHash(context) : currentHash(kind, context),
    referenceCount: count,
    referencingWorkloads: workloads,
    absentCaBundles: absent,
  })
  return { status, children: [] }
}

function check<K extends KindName>(kind: ConfigKind<K>, context: SyncContext<K>): CaBundleCheck {
  const invalid = specFailure(context.violations, kind.invalidReason)
  if (invalid) return { failure: invalid }
  const own = kind.check?.(context)
  const bundles = checkCaBundles(context, kind.caBundles?.(context.parent) ?? [])
  const secrets = context.missingSecretsFailure(kind.secrets?.(context.parent) ?? [], 'SecretNotFound')
  return { ...bundles, failure: own ?? secrets ?? bundles.failure }
}

function currentHash<K extends KindName>(kind: ConfigKind<K>, context: SyncContext<K>): string {
  const secrets = without(kind.secrets?.(context.parent) ?? [], kind.rereadSecrets?.(context.parent) ?? [])
  const reread = kind.rereadBundles?.(context.parent) ?? []
  const bundles = (kind.caBundles?.(context.parent) ?? []).filter((bundle) => !reread.includes(bundle))
  return hashOf({
    spec: context.parent.spec,
    ...(secrets.length > 0 && { secrets: context.secretRevision(secrets) }),
    ...(bundles.length > 0 && {
      configMaps: context.configMapRevision(bundles.map(({ configMapRef }) => configMapRef.name)),
    }),
  })
}

/** Removes each item of `reread` only once, because another field may refer to the same Secret and require new pods. */
function without(all: readonly SecretRef[], reread: readonly SecretRef[]): readonly SecretRef[] {
  const left = [...reread]
  return all.filter(({ name, key }) => {
    const index = left.findIndex((ref) => ref.name === name && ref.key === key)
    if (index !== -1) left.splice(index, 1)
    return index === -1
  })
}

function previousHash(context: AnyContext): string | undefined {
  const hash = fieldsOf(context.stored['status'])['configHash']
  return typeof hash === 'string' ? hash : undefined
}
