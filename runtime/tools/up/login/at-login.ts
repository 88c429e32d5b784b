/** Starts `gatehouse up` at login: a systemd user unit, a launchd agent, or a Windows scheduled task. */
import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { invalidConfig } from '../../../../schemas/index.ts'
import type { Host } from '../../../toolkit/clients/index.ts'
import { upFolder } from '../../../toolkit/client-files/host.ts'
import { selfCommand } from '../../../toolkit/terminal/self.ts'
import { launchdAgent, scheduledTask, systemdUnit } from './login-files.ts'

export interface LoginStart {
  /**
   * Returns the file or the task that was installed. Throws INVALID_CONFIG when the system rejects the file or the
   * task.
   */
  install(): string
  /** Returns undefined when nothing was installed. */
  remove(): string | undefined
}

const unitName = 'gatehouse-up.service'
const agentName = 'dev.gatehouse.up'
const taskName = 'Gatehouse up'

export function loginStart(host: Host): LoginStart {
  return { linux: systemd, darwin: launchd, win32: taskScheduler }[host.platform](host)
}

/**
 * Variables that the servers and the state folder depend on. A login session has its own values for all other
 * variables.
 */
const keptVariables = ['PATH', 'XDG_STATE_HOME', 'XDG_CONFIG_HOME', 'GATEHOUSE_STATE_DIR', 'TMPDIR']

function startOf(host: Host) {
  const env = keptVariables.flatMap((name) => {
    const value = host.env[name]
    return value === undefined || value === '' ? [] : [[name, value] as const]
  })
  return { argv: [...selfCommand(), 'up', '--resume'], env: Object.fromEntries(env), home: host.home }
}

function systemd(host: Host): LoginStart {
  const config = host.env['XDG_CONFIG_HOME'] || join(host.home, '.config')
  const unit = join(config, 'systemd/user', unitName)
  // The link that `systemctl --user enable` creates.
  const link = join(config, 'systemd/user/default.target.wants', unitName)
  const reload = () => runQuietly('systemctl', ['--user', 'daemon-reload'])
  return {
    install() {
      writeFile(unit, systemdUnit(startOf(host)))
      mkdirSync(dirname(link), { recursive: true })
      rmSync(link, { force: true })
      symlinkSync(join('..', unitName), link)
      reload()
      return unit
    },
    remove() {
      const isInstalled = existsSync(unit) || lstatSync(link, { throwIfNoEntry: false }) !== undefined
      if (!isInstalled) return undefined
      rmSync(link, { force: true })
      rmSync(unit, { force: true })
      reload()
      return unit
    },
  }
}

function launchd(host: Host): LoginStart {
  const agent = join(host.home, 'Library/LaunchAgents', `${agentName}.plist`)
  return {
    install() {
      writeFile(agent, launchdAgent(agentName, startOf(host)))
      return agent
    },
    remove() {
      if (!existsSync(agent)) return undefined
      runQuietly('launchctl', ['bootout', `gui/${userInfo().uid}/${agentName}`])
      rmSync(agent, { force: true })
      return agent
    },
  }
}

function taskScheduler(host: Host): LoginStart {
  const file = join(upFolder(host), 'task.xml')
  return {
    install() {
      // The scheduler reads UTF-16.
      writeFile(file, Buffer.from(`\ufeff${scheduledTask(startOf(host))}`, 'utf16le'))
      try {
        execFileSync('schtasks', ['/create', '/tn', taskName, '/xml', file, '/f'], { stdio: 'ignore' })
      } catch {
        throw invalidConfig('--at-login: Task Scheduler rejected the task')
      }
      return taskName
    },
    remove() {
      if (!existsSync(file)) return undefined
      runQuietly('schtasks', ['/delete', '/tn', taskName, '/f'])
      rmSync(file, { force: true })
      return taskName
    },
  }
}

function writeFile(path: string, content: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content, { mode: 0o600 })
}

/** Ignores failures: the file alone determines what happens at the next login. */
function runQuietly(program: string, args: readonly string[]): void {
  try {
    execFileSync(program, args, { stdio: 'ignore', timeout: 10_000 })
  } catch {
    // The service manager is not available in this session.
  }
}
