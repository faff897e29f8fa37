#!/usr/bin/env bash
# A Ceph of one node with an S3 gateway, on loopback, to be thrown away: one monitor, one OSD on
# BlueStore in a file, one radosgw, no manager (S3 does without).
#
#   ceph_up.sh install         install the daemons from Debian's packages, unless they are there
#   ceph_up.sh start           make and start a cluster in $CEPH_DIR
#   ceph_up.sh kill NAME       SIGKILL one of mon, osd, rgw
#   ceph_up.sh revive NAME     start it again, and wait until the gateway answers
#   ceph_up.sh stop            end the daemons that this script has started, remove $CEPH_DIR
#
#   CEPH_DIR   where everything is kept       RGW_PORT   where the gateway listens
#   CEPH_OWNER a process: when it is no more, the cluster is stopped
set -euo pipefail

[ "${1:-}" = install ] || : "${CEPH_DIR:?names the directory of the cluster}"
dir=${CEPH_DIR:-}
port=${RGW_PORT:-7480}
mon_port=$((port + 6000)) # below what connections are given, as the gateway's should be
conf=$dir/ceph.conf
packages="ceph-mon ceph-osd ceph-common radosgw curl"

install_daemons() {
  local missing=0 name
  for name in ceph-mon ceph-osd radosgw radosgw-admin ceph curl; do
    command -v "$name" >/dev/null || missing=1
  done
  [ $missing = 0 ] && return
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  # shellcheck disable=SC2086
  apt-get -o DPkg::Lock::Timeout=600 install -y -q --no-install-recommends $packages
}

write_conf() {
  cat >"$conf" <<EOF
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon host = [v2:127.0.0.1:$mon_port,v1:127.0.0.1:$((mon_port + 1))]
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
public network = 127.0.0.0/8
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
auth allow insecure global id reclaim = false
run dir = $dir/run
admin socket = $dir/run/\$name.asok
log file = $dir/log/\$name.log
crash dir = $dir/log
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 2
osd pool default pgp num = 2
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon max pg per osd = 1000
[mon]
mon data = $dir/mon
mon cluster log file = $dir/log/cluster.log
mon data avail warn = 1
mon data avail crit = 1
mon osd min up ratio = 0
paxos propose interval = 0.05
[osd]
osd data = $dir/osd
osd objectstore = bluestore
bluestore block size = $((2 << 30))
bluestore block db create = false
bluestore block wal create = false
bluestore cache autotune = false
bluestore cache size = $((64 << 20))
osd op num shards = 2
osd op num threads per shard = 1
# A file system under \$dir may not take longer names.
osd max object name len = 256
osd max object namespace len = 64
[client.rgw.a]
rgw frontends = beast endpoint=127.0.0.1:$port tcp_nodelay=1
rgw data = $dir/rgw
ms mon client mode = crc
rgw thread pool size = 32
rgw num rados handles = 1
rgw dynamic resharding = false
rgw override bucket index max shards = 1
rgw run sync thread = false
rgw rados pool pg num min = 2
rgw enable usage log = false
rgw enable ops log = false
EOF
}

daemon() { # NAME: the command of a daemon
  case $1 in
    mon) echo ceph-mon -c "$conf" -i a -f ;;
    osd) echo ceph-osd -c "$conf" -i 0 -f ;;
    rgw) echo radosgw -c "$conf" -n client.rgw.a --no-mon-config -f ;;
    *) echo "no daemon $1" >&2; return 2 ;;
  esac
}

launch() {
  local command
  command=$(daemon "$1")
  # shellcheck disable=SC2086
  setsid nohup $command >>"$dir/log/$1.out" 2>&1 </dev/null &
  echo $! >"$dir/pids/$1"
}

runs() { [ -f "$dir/pids/$1" ] && kill -0 "$(cat "$dir/pids/$1")" 2>/dev/null; }

await() { # DAEMON CONDITION...: poll, for a minute at most, and as long as the daemon runs
  local name=$1 tries
  shift
  for tries in $(seq 600); do
    "$@" >/dev/null 2>&1 && return
    runs "$name" || { tail -n 20 "$dir/log/$name.out" >&2; return 1; }
    sleep 0.1
  done
  echo "$name did not come up" >&2
  return 1
}

ask() { timeout 60 ceph -c "$conf" --connect-timeout 20 "$@"; }
osd_is_up() { ask osd stat -f json 2>/dev/null | grep -q '"num_up_osds":1[,}]'; }
gateway_answers() { curl -fs -m 5 -o /dev/null "http://127.0.0.1:$port/"; }

watch_owner() { # stop when the process that the cluster is for was killed
  while [ -d "$dir" ] && kill -0 "$1" 2>/dev/null; do sleep 2; done
  [ ! -d "$dir" ] || stop
}

start() {
  mkdir -p "$dir"/{mon,osd,rgw,run,log,pids}
  write_conf
  if [ -n "${CEPH_OWNER:-}" ]; then
    setsid nohup bash "$0" watch "$CEPH_OWNER" >/dev/null 2>&1 </dev/null &
  fi
  ceph-authtool --create-keyring "$dir/keyring" --gen-key -n mon. --cap mon 'allow *'
  monmaptool --create --clobber --fsid "$(awk '/^fsid/ {print $3}' "$conf")" \
    --addv a "[v2:127.0.0.1:$mon_port,v1:127.0.0.1:$((mon_port + 1))]" "$dir/monmap"
  ceph-mon -c "$conf" --mkfs -i a --monmap "$dir/monmap" --keyring "$dir/keyring"
  launch mon
  await mon ask mon stat
  local uuid
  uuid=$(cat /proc/sys/kernel/random/uuid)
  ask osd new "$uuid" 0
  ceph-osd -c "$conf" -i 0 --mkfs --osd-uuid "$uuid"
  launch osd
  await osd osd_is_up
  launch rgw
  await rgw gateway_answers
  timeout 60 radosgw-admin -c "$conf" -n client.rgw.a --no-mon-config user create \
    --uid=snap --display-name=snap --access-key=snapaccess --secret-key=snapsecret
}

stop() {
  local name tries
  for name in rgw osd mon; do
    runs $name && kill -TERM "$(cat "$dir/pids/$name")"
  done
  for tries in $(seq 50); do
    runs rgw || runs osd || runs mon || break
    sleep 0.1
  done
  for name in rgw osd mon; do
    runs $name && kill -KILL "$(cat "$dir/pids/$name")"
  done
  rm -rf "$dir"
}

case ${1:-} in
  install) install_daemons ;;
  start) start ;;
  kill) kill -KILL "$(cat "$dir/pids/$2")" ;;
  revive)
    launch "$2"
    [ "$2" != osd ] || await osd osd_is_up
    await rgw gateway_answers
    ;;
  stop) stop ;;
  watch) watch_owner "$2" ;;
  *) echo "usage: $0 install|start|kill NAME|revive NAME|stop" >&2; exit 2 ;;
esac
