/** A pod's volumes and environment, made local. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { LocalContainer } from '../../../../runtime/toolkit/local/pods.ts'
import { environmentOf, localPaths, writeVolumes } from '../../../../runtime/toolkit/local/volumes.ts'
import type { LocalObject } from '../../../../runtime/toolkit/manifests/objects.ts'

const secret: LocalObject = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 's', namespace: 'default' },
  data: { token: Buffer.from('hidden').toString('base64') },
}
const map: LocalObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', namespace: 'default' },
  data: { 'config.yaml': 'key: /etc/keys/key.pem\nurl: SERVICE\n' },
}
const pod: LocalObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'd', namespace: 'default' },
}

t.test('environment: references are resolved, variables expanded, optional ones omitted', async (t) => {
  const container: LocalContainer = {
    name: 'c',
    image: 'i',
    env: [
      { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 's', key: 'token' } } },
      { name: 'HEADER', value: 'Bearer $(TOKEN)' },
      { name: 'LITERAL', value: '$$(TOKEN) $(UNKNOWN)' },
      { name: 'NONE', valueFrom: { secretKeyRef: { name: 'absent', key: 'k', optional: true } } },
      { name: 'NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
    ],
  }
  t.same(environmentOf(container, { object: pod, objects: [secret] }), {
    TOKEN: 'hidden',
    HEADER: 'Bearer hidden',
    LITERAL: '$(TOKEN) $(UNKNOWN)',
    NAMESPACE: 'default',
  })
  const missing: LocalContainer = {
    ...container,
    env: [{ name: 'X', valueFrom: { secretKeyRef: { name: 'no', key: 'k' } } }],
  }
  t.throws(() => environmentOf(missing, { object: pod, objects: [] }), /X requires key "k" of Secret "no"/)
})

t.test('volumes: files have local paths and addresses, and only their owner can read them', async (t) => {
  const folder = t.testdir({})
  const container: LocalContainer = {
    name: 'c',
    image: 'i',
    volumeMounts: [
      { name: 'config', mountPath: '/etc/config' },
      { name: 'keys', mountPath: '/etc/keys' },
    ],
  }
  const template = {
    spec: {
      containers: [container],
      volumes: [
        { name: 'config', configMap: { name: 'c' } },
        { name: 'keys', secret: { secretName: 's', items: [{ key: 'token', path: 'key.pem' }] } },
      ],
    },
  }
  const mounts = writeVolumes(template, container, {
    namespace: 'default',
    objects: [secret, map],
    folder,
    localise: (text) => text.replace('SERVICE', 'http://127.0.0.1:1'),
  })
  const config = readFileSync(join(folder, 'config/config.yaml'), 'utf8')
  t.equal(config, `key: ${join(folder, 'keys/key.pem')}\nurl: http://127.0.0.1:1\n`)
  t.equal(readFileSync(join(folder, 'keys/key.pem'), 'utf8'), 'hidden')
  t.equal(statSync(join(folder, 'keys/key.pem')).mode & 0o777, 0o600)
  t.equal(
    localPaths('--config=/etc/config/config.yaml', mounts),
    `--config=${join(folder, 'config')}/config.yaml`,
  )
  t.equal(
    localPaths('/etc/configuration /x/etc/config', mounts),
    '/etc/configuration /x/etc/config',
    'whole paths only',
  )
})
