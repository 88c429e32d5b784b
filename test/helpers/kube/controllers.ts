/**
 * The parts of the installation that connect Metacontroller to the hooks: the definitions of kinds and the
 * CompositeControllers.
 */
import { join } from 'node:path'
import { manifestsFolder } from '../hooks/manifests.ts'
import type { KubeApiserver } from './apiserver.ts'
import { compositeControllerCrd, otherMetacontrollerCrds } from './metacontroller-crd.ts'

/** Metacontroller calls the hooks at `hooksUrl`. */
export function installControllers(kube: KubeApiserver, hooksUrl: string): void {
  const crds = { apiVersion: 'v1', kind: 'List', items: [compositeControllerCrd, ...otherMetacontrollerCrds] }
  kube.must(['apply', '-f', '-'], JSON.stringify(crds))
  kube.must(['apply', '--server-side', '-f', join(manifestsFolder, 'crds')])
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  const text = kube.must(['kustomize', join(manifestsFolder, 'overlays/private-metacontroller')])
  kube.must(
    ['apply', '-f', '-'],
    controllersIn(text).replaceAll(/https:\/\/gatehouse-hooks\.[^/\s]+/g, hooksUrl),
  )
}

function controllersIn(text: string): string {
  return text
    .split(/^---$/m)
    .filter((one) => /^kind: CompositeController$/m.test(one))
    .join('---\n')
}
