/**
 * Permissions: almost none for the hooks server and, for a private Metacontroller, exactly those that the hooks
 * registry requires.
 *
 * The Metacontroller role is derived from each kind's children and related objects. The role has neither `escalate` nor
 * `bind`, so its rules must contain every permission that a generated Role grants, such as attaching to a pod.
 * Source: Metacontroller's needs per parent, child and related kind; Kubernetes RBAC.
 */
import { apiVersion, apiGroup } from '../../schemas/index.ts'
import { distinct, type HookedKind, type ManifestKind } from './kinds.ts'
import { labels, type GeneratedManifest, names, rules } from './objects.ts'
import type { Defaults } from './defaults.ts'

const rbac = 'rbac.authorization.k8s.io/v1'
const read = ['get', 'list', 'watch'] as const
const own = [...read, 'create', 'update', 'patch', 'delete'] as const

/** Permissions for the hooks server, which writes Events because a hook cannot return them. */
export function hooksRbac(defaults: Defaults): readonly GeneratedManifest[] {
  const role = [{ apiGroups: [''], resources: ['events'], verbs: ['create'] }]
  return clusterRole('hooks', names.hooks, role, defaults)
}

/** Permissions for a private Metacontroller, including those for stdio servers without a command. */
export function metacontrollerRbac(
  kinds: readonly HookedKind[],
  defaults: Defaults,
): readonly GeneratedManifest[] {
  const attach = [
    { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
    { apiGroups: [''], resources: ['pods/attach'], verbs: ['get', 'create'] },
  ]
  const role = [...metacontrollerRules(kinds), ...attach]
  return clusterRole('metacontroller', names.metacontroller, role, defaults)
}

/** Derives rules from the kinds' parents, children and related objects. */
export function metacontrollerRules(kinds: readonly HookedKind[]): readonly unknown[] {
  const parents = kinds.map((kind) => ({ apiVersion, resource: kind.plural }))
  const children = distinct(kinds.flatMap((kind) => kind.children))
  const childKeys = new Set(children.map((one) => `${one.apiVersion} ${one.resource}`))
  const parentKeys = new Set(kinds.map((kind) => kind.plural))
  const related = distinct(kinds.flatMap((kind) => kind.related)).filter(
    (one) => !childKeys.has(`${one.apiVersion} ${one.resource}`) && !isParent(one.apiVersion, one.resource),
  )
  function isParent(version: string, resource: string): boolean {
    return version === apiVersion && parentKeys.has(resource)
  }
  return [
    ...rules(parents, [...read, 'update']),
    ...rules(parents, ['get', 'update'], '/status'),
    // Metacontroller sets owner references that block the owner's deletion. Some clusters require this permission for
    // such references.
    ...rules(parents, ['update'], '/finalizers'),
    ...rules(children, own),
    ...rules(related, read),
    {
      apiGroups: ['metacontroller.k8s.io'],
      resources: ['compositecontrollers', 'decoratorcontrollers', 'controllerrevisions'],
      verbs: own,
    },
    { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: read },
    { apiGroups: [''], resources: ['namespaces'], verbs: read },
    { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
  ]
}

/** Roles for users, aggregated into the built-in view, edit and admin roles. */
export function userRoles(kinds: readonly ManifestKind[], defaults: Defaults): readonly GeneratedManifest[] {
  const resources = kinds.map((kind) => kind.plural)
  const aggregate = (to: readonly string[]) =>
    Object.fromEntries(to.map((role) => [`rbac.authorization.k8s.io/aggregate-to-${role}`, 'true']))
  return [
    {
      apiVersion: rbac,
      kind: 'ClusterRole',
      metadata: {
        name: 'gatehouse-view',
        labels: { ...labels(defaults, 'controllers'), ...aggregate(['view', 'edit', 'admin']) },
      },
      rules: [{ apiGroups: [apiGroup], resources, verbs: read }],
    },
    {
      apiVersion: rbac,
      kind: 'ClusterRole',
      metadata: {
        name: 'gatehouse-edit',
        labels: { ...labels(defaults, 'controllers'), ...aggregate(['edit', 'admin']) },
      },
      rules: [
        {
          apiGroups: [apiGroup],
          resources,
          verbs: ['create', 'update', 'patch', 'delete', 'deletecollection'],
        },
      ],
    },
  ]
}

function clusterRole(
  component: 'hooks' | 'metacontroller',
  name: string,
  role: readonly unknown[],
  defaults: Defaults,
): readonly GeneratedManifest[] {
  return [
    {
      apiVersion: rbac,
      kind: 'ClusterRole',
      metadata: { name, labels: labels(defaults, component) },
      rules: role,
    },
    {
      apiVersion: rbac,
      kind: 'ClusterRoleBinding',
      metadata: { name, labels: labels(defaults, component) },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: defaults.namespace }],
    },
  ]
}
