// The first script of the single executable: writes the program that is inside to the user's cache folder, once, and
// runs it from there. Node loads worker threads and the policy engine only from actual files.
const { mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { homedir, tmpdir } = require('node:os')
const { dirname, join } = require('node:path')
const { getAsset } = require('node:sea')

const index = JSON.parse(getAsset('index.json', 'utf8'))

/** Folder for the program. Only the user may write to it, because write access determines what runs. */
function folder() {
  const { LOCALAPPDATA: local, XDG_CACHE_HOME: xdg } = process.env
  const cache = xdg || (process.platform === 'win32' ? local : homedir() && join(homedir(), '.cache'))
  const path = cache && join(cache, 'gatehouse', `program-${index.digest}`)
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    const { uid, mode } = statSync(path)
    if (process.getuid && (uid !== process.getuid() || (mode & 0o022) !== 0)) throw new Error('another user can write to the folder')
    return path
  } catch {
    const own = mkdtempSync(join(tmpdir(), 'gatehouse-'))
    process.on('exit', () => rmSync(own, { recursive: true, force: true }))
    return own
  }
}

/** Writes missing files. Each file appears complete, so two simultaneous starts do not interfere with each other. */
function unpack(to) {
  for (const { name, size } of index.files) {
    const path = join(to, name)
    if (statSync(path, { throwIfNoEntry: false })?.size === size) continue
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const draft = `${path}.${process.pid}`
    writeFileSync(draft, new Uint8Array(getAsset(name)), { mode: 0o600 })
    renameSync(draft, path)
  }
}

const home = folder()
unpack(home)
const program = join(home, 'gatehouse.js')
// Child processes and cluster workers start with the script's path, as in Node. Users pass no script path.
const args = process.argv.slice(2)
process.argv = [process.execPath, program, ...(args[0] === program ? args.slice(1) : args)]
createRequire(program)('./start.cjs')
