/**
 * Merges a user's podTemplateSpec into a generated pod template, and rejects changes that would break the pod.
 *
 * The user's fields take precedence as long as the pod still works: resources, scheduling, extra containers,
 * environment and security settings. The user's template must not remove the main container or its mounts and volumes,
 * or change the labels that select the pod. Types are checked here, because the API server would reject the whole
 * Deployment and the resource would not show why.
 */
import type { Violation } from '../../schemas/index.ts'
import { type Fields, fieldsOf, isFields, listOf, type StringMap } from '../base/kube.ts'
import { literalTemplate } from './literal.ts'
import type { PodTemplateSpec } from './pod.ts'
import { normalizeTemplate } from './normalize.ts'
import { podRuleErrors } from './checks/pod-rules.ts'
import { podTemplateErrors } from './checks/pod-shape.ts'
import { strategicMerge } from './strategic-merge.ts'

export type PodTemplateResult =
  | { readonly template: Fields; readonly violations?: undefined }
  | { readonly template?: undefined; readonly violations: readonly string[] }

interface TemplateMerge {
  /** The resource's `spec.podTemplateSpec`. */
  readonly user: unknown
  /** Name of the main container. */
  readonly container: string
  readonly selector: StringMap
  /** Names of the StatefulSet's volume claim templates. */
  readonly claims?: readonly string[]
}

/**
 * Merges the user's template into `plain`, whose variables, commands and arguments are literal. Every generated pod
 * passes through this function.
 */
export function mergePodTemplate(
  plain: PodTemplateSpec,
  { user, container, selector, claims = [] }: TemplateMerge,
): PodTemplateResult {
  const generated = literalTemplate(plain)
  if (user === undefined || user === null) return { template: normalizeTemplate(fieldsOf(generated)) }
  const shape = podTemplateErrors(user)
  if (shape.length > 0) return { violations: shape }
  const merged = merge(generated, user)
  const metadata = fieldsOf(merged['metadata'])
  const template = {
    ...merged,
    metadata: { ...metadata, labels: { ...fieldsOf(metadata['labels']), ...selector } },
  }
  const violations = mergeErrors({ generated, user, template }, container, claims)
  return violations.length > 0 ? { violations } : { template: normalizeTemplate(template) }
}

function merge(generated: PodTemplateSpec, user: unknown): Fields {
  return strategicMerge(fieldsOf(withoutReplaced(generated, user)), fieldsOf(user))
}

interface Merged {
  readonly generated: PodTemplateSpec
  readonly user: unknown
  readonly template: Fields
}

/**
 * Returns the errors in a merged template. Without `claims`, the template is incomplete: volumes may still be added.
 */
function mergeErrors(
  { generated, user, template }: Merged,
  container: string,
  claims?: readonly string[],
): readonly string[] {
  const shapes = podTemplateErrors(template)
  const scope = { merged: { base: generated, user }, claims }
  const rules = shapes.length > 0 ? shapes : podRuleErrors(template, 'podTemplateSpec', scope)
  return [...rules, ...missingParts(generated, template, container)]
}

/**
 * Drops the generated topology spread constraints and `preStop` hooks that the user's template replaces. Both sets of
 * constraints would apply at once, and a container has only one `preStop` hook.
 */
function withoutReplaced(generated: PodTemplateSpec, user: unknown): PodTemplateSpec {
  const own = fieldsOf(fieldsOf(user)['spec'])
  const { topologySpreadConstraints, containers, ...spec } = generated.spec
  return {
    ...generated,
    spec: {
      ...spec,
      ...(own['topologySpreadConstraints'] === undefined && { topologySpreadConstraints }),
      containers: containers.map((container) => {
        const { lifecycle, ...rest } = container
        const given = fieldsOf(named(own['containers'], container.name)?.['lifecycle'])['preStop']
        return given === undefined || given === null ? container : rest
      }),
    },
  }
}

/** Reports parts of the generated template that the container needs but the merge removed. */
function missingParts(generated: PodTemplateSpec, merged: Fields, name: string): string[] {
  const spec = fieldsOf(merged['spec'])
  const before = generated.spec.containers.find((container) => container.name === name)
  const after = named(spec['containers'], name)
  if (!before || !after) return [`podTemplateSpec must not remove the container ${name}`]
  const violations: string[] = []
  for (const volume of generated.spec.volumes ?? []) {
    if (!named(spec['volumes'], volume.name))
      violations.push(`podTemplateSpec must not remove the volume ${volume.name}`)
  }
  const paths = new Set(listOf(after['volumeMounts']).map((mount) => fieldsOf(mount)['mountPath']))
  for (const mount of before.volumeMounts ?? []) {
    if (!paths.has(mount.mountPath))
      violations.push(`podTemplateSpec must not remove the mount ${mount.mountPath}`)
  }
  return violations
}

function named(list: unknown, name: string): Fields | undefined {
  return listOf(list)
    .filter(isFields)
    .find((item) => item['name'] === name)
}

/**
 * Validates a user's podTemplateSpec on its own. `generated` lists the containers that the template is merged into;
 * `owner` is the path of the object that contains the template.
 */
function podTemplateViolations(user: unknown, generated: readonly string[], owner = 'spec'): Violation[] {
  if (user === undefined || user === null) return []
  const shapes = podTemplateErrors(user)
  const errors = shapes.length > 0 ? shapes : podRuleErrors(user, 'podTemplateSpec', { generated })
  return asViolations(errors, owner)
}

function asViolations(errors: readonly string[], owner: string): Violation[] {
  return errors.map((failure) => {
    const [path = '', ...rest] = failure.split(' ')
    return { path: `${owner}.${path}`, message: rest.join(' ') }
  })
}

/** A user's template, and the generated template that it is merged into, without the parts that references add. */
export interface TemplateCheck {
  readonly user: unknown
  /** Called only if the user's template is valid on its own. */
  readonly generated: () => PodTemplateSpec
  /** Name of the main container. */
  readonly container: string
  /** Path of the object that contains the template. Default: `spec`. */
  readonly owner?: string
}

/**
 * Like `podTemplateViolations`, but also returns errors from merging with the generated template. Reconciliation checks
 * the parts of the pod that are added only by references.
 */
export function mergedTemplateViolations({ user, generated, container, owner }: TemplateCheck): Violation[] {
  const own = podTemplateViolations(user, [container], owner)
  if (user === undefined || user === null || own.length > 0) return own
  const plain = literalTemplate(generated())
  const errors = mergeErrors({ generated: plain, user, template: merge(plain, user) }, container)
  return asViolations(errors, owner ?? 'spec')
}
